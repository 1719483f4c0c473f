"""The time zone of this machine, summer time included; what Python offers itself is today's offset alone."""

from __future__ import annotations

import os
from datetime import UTC, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

_LOCAL_TIME = "/etc/localtime"


def machine_zone() -> tzinfo:
    """Return the zone that a JVM on this machine stamps instants in.

    As a JVM does: ``TZ`` by name or by file, else ``/etc/localtime``, and UTC where that tells nothing.
    """
    name = os.environ.get("TZ", "").removeprefix(":") or _LOCAL_TIME
    try:
        return _zone_of(Path(name)) if name.startswith("/") else ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # no such zone; a folder of zones ("Europe"); no file of a zone
        return UTC


def _zone_of(path: Path) -> ZoneInfo:
    # /etc/localtime is a link to the zone's file, whose path ends in the zone's name.
    name = str(path.resolve()).partition("/zoneinfo/")[2]
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name or str(path))
