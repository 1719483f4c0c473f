"""Runs ``tests/cases/expiry.txt``."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.unit.core.planning.builders import NO_LIMITS, expiry, partition, policies
from tests.unit.core.planning.case_files import Case, read_cases

UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}


def planned(case: Case) -> list[tuple[str, str]]:
    """Plan a case, and write the plan as the case writes what it expects."""
    rows = []
    for given, _ in case.lines:
        path, modified, amount, unit = given.split()
        digits = modified.replace("-", "").replace("T", "").replace(":", "").ljust(14, "0")
        rows.append(partition(path, modified=f"{digits}000", total_bytes=int(amount) * UNITS[unit]))
    plan = expiry(
        *rows,
        by=policies(*case.settings.get("policy", [])),
        fields=tuple(case.setting("fields").split()),
        field_types=dict(pair.split("=") for pair in case.setting("types").split()),
        pending=dict(pair.rsplit("@", 1) for pair in case.setting("pending").split()),
        now=datetime.fromisoformat(case.setting("now", "2026-11-30")).replace(tzinfo=UTC),
        guards=NO_LIMITS.holding_back(
            protected=case.setting("protected").split(), legal_hold=case.setting("hold").split()
        ),
        created=dict(pair.rsplit("@", 1) for pair in case.setting("created").split()),
    )
    by_path = {
        entry.partition_path: f"{entry.decision}: {entry.reason}"
        + (f" // why not: {entry.why_not}" if entry.why_not and entry.why_not not in entry.reason else "")
        for entry in plan.entries
    }
    return [(given, by_path[given.split()[0]]) for given, _ in case.lines]


@pytest.mark.parametrize("case", read_cases("expiry.txt"), ids=lambda case: case.title)
def test_expiry(case: Case) -> None:
    """Each partition of a case is kept or dropped for the reason that the case gives."""
    assert case.lines == planned(case)
