"""Decode the content of instant files: empty, JSON or Avro, by table version and action; name a new instant.

Source: Hudi's ``HoodieCommitMetadata``, ``HoodieRequestedReplaceMetadata``, ``HoodieCompactionPlan`` and the Avro
schemas that each file carries in its header.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.commit import (
    RESTORES_KEY,
    CommitMetadata,
    PendingPlan,
    PlanKind,
    PlannedSlice,
    WriteStat,
)
from airflow_hudi_maint.core.model.instant import Instant, instant_moment, moment_instant
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.avro_records import AVRO_MAGIC, container_record

MOST_BEHIND = timedelta(hours=1)
"""How far this machine's clock may be behind the newest instant: an hour repeats when summer time ends."""

_FULL_DIGITS = 17
_LAST_MILLISECOND = "999"


def decode(data: bytes, *, name: str, files: bool = True) -> Mapping[str, Any]:
    """Return the record that an instant file holds; an empty file holds an empty one.

    Raises CorruptTableError that names the file (``name``).
    """
    if not data:
        return {}
    try:
        return container_record(data, files=files) if data.startswith(AVRO_MAGIC) else _decode_json(data)
    except Exception as error:
        # fastavro raises many kinds for broken input: struct.error, EOFError, IndexError, its own.
        msg = (
            f"{name} cannot be decoded: {type(error).__name__}: {error}; restore the file from a copy of the table, or "
            "roll the instant back with Hudi"
        )
        raise CorruptTableError(msg) from error


def _decode_json(data: bytes) -> Mapping[str, Any]:
    value = json.loads(data)
    if not isinstance(value, dict):
        msg = f"expected a JSON object, found {type(value).__name__}"
        raise TypeError(msg)
    return value


def commit_metadata(record: Mapping[str, Any], *, name: str, files: bool = True) -> CommitMetadata:
    """Read a decoded commit, delta commit or replace commit; ``name`` is the file's, for errors.

    Without ``files`` the partitions that were written are told, but not what was written to them.
    """
    try:
        written = record.get("partitionToWriteStats") or {}
        replaced = record.get("partitionToReplaceFileIds") or {}
        extra = record.get("extraMetadata") or {}
        return CommitMetadata(
            operation=_text(record.get("operationType")) or None,
            written={path: tuple(map(_write_stat, stats)) if files else () for path, stats in written.items()},
            replaced={partition: tuple(map(_text, ids)) for partition, ids in replaced.items()},
            schema=_text(extra.get("schema")) or None,
            restores=_text(extra.get(RESTORES_KEY)) or None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        msg = f"{name} is no commit metadata: {error!r}"
        raise CorruptTableError(msg) from error


def _write_stat(stat: Mapping[str, Any]) -> WriteStat:
    return WriteStat(
        file_id=_text(stat["fileId"]),
        path=_text(stat["path"]),
        bytes=_count(stat.get("fileSizeInBytes")),
        records=_count(stat.get("numWrites")),
        # Hudi's NULL_COMMIT is the word null.
        begins_group=_text(stat.get("prevCommit")) in ("", "null"),
    )


def _text(value: object) -> str:
    """A text that may be null; TypeError for anything else, which JSON would let through."""
    if value is None:
        return ""
    if type(value) is not str:
        raise TypeError(f"{value!r:.80} where a text belongs")
    return value


def _texts(value: object) -> dict[str, str]:
    """A map of texts that may be null."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r:.80} where a map belongs")
    return {_text(key): _text(text) for key, text in value.items()}


def _count(value: object) -> int:
    if value is None:
        return 0
    if type(value) is not int:
        raise TypeError(f"{value!r:.80} where a number belongs")
    return value


def clustering_plan(record: Mapping[str, Any], *, instant: Instant, name: str) -> PendingPlan | None:
    """Read a requested replace or clustering; None when it is no clustering (a dropped partition, an overwrite)."""
    plan = record.get("clusteringPlan")
    if plan is None:
        return None
    try:
        groups = plan["inputGroups"] or ()
        strategy = plan.get("strategy") or {}
        counts = tuple(_count(group.get("numOutputFileGroups")) for group in groups)
        return PendingPlan(
            instant=instant,
            kind=PlanKind.CLUSTERING,
            groups=tuple(tuple(map(_planned_slice, group["slices"] or ())) for group in groups),
            output_file_count=sum(counts),
            group_output_file_counts=counts,
            strategy_class=_text(strategy.get("strategyClassName")),
            parameters=_texts(strategy.get("strategyParams")),
            # The plan's own come later: what planned knows more of it than what requested the instant.
            extra_metadata={**_texts(record.get("extraMetadata")), **_texts(plan.get("extraMetadata"))},
        )
    except (AttributeError, KeyError, TypeError) as error:
        msg = f"{name} is no clustering plan: {error!r}"
        raise CorruptTableError(msg) from error


def compaction_plan(record: Mapping[str, Any], *, instant: Instant, kind: PlanKind, name: str) -> PendingPlan:
    """Read a requested compaction or log compaction."""
    try:
        inputs = tuple(map(_planned_slice, record.get("operations") or ()))
    except (AttributeError, KeyError, TypeError) as error:
        msg = f"{name} is no compaction plan: {error!r}"
        raise CorruptTableError(msg) from error
    return PendingPlan(instant=instant, kind=kind, groups=(inputs,), output_file_count=len(inputs))


def _planned_slice(value: Mapping[str, Any]) -> PlannedSlice:
    # Clustering plans hold absolute paths, which mean nothing once the table moved; the name is what identifies a file.
    base_file_name = (value["dataFilePath"] or "").rpartition("/")[2]
    return PlannedSlice(
        partition_path=_text(value["partitionPath"]),
        file_id=_text(value["fileId"]),
        base_file_name=base_file_name,
        log_file_names=frozenset(path.rpartition("/")[2] for path in value["deltaFilePaths"] or ()),
    )


def new_instant_time(timeline: Timeline, *, now: datetime, zone: tzinfo, archived: str | None = None) -> str:
    """The text of an instant at ``now`` that is newer than all others: 17 digits in the table's ``zone``.

    Requested and completion times of all states count, and ``archived``, the newest instant of the archive where the
    caller looked. Where the clock is behind them, the new instant is the newest and one millisecond.

    Raises InvalidSettingError when the clock is behind by more than :data:`MOST_BEHIND`.

    >>> new_instant_time(Timeline(instants=()), now=datetime(2026, 11, 30, 5, tzinfo=UTC), zone=UTC)
    '20261130050000000'
    """
    wanted = moment_instant(now, zone=zone)
    times = [time for one in timeline for time in (one.requested_time, one.completion_time) if time]
    newest = max(map(_comparable, [*times, archived] if archived else times), default="")
    if wanted > newest:
        return wanted
    # As clock readings without a zone: what is compared and counted on are texts.
    try:
        last = instant_moment(newest, zone=UTC)
    except ValueError:
        last = None
    if last is None or last - instant_moment(wanted, zone=UTC) > MOST_BEHIND:
        msg = (
            f"this machine's clock says {wanted} in the zone {zone} of the table, and the table has the instant "
            f"{newest}: a plan would be older than what it is made from. Set timeline_zone to the zone of the "
            "table's writers, or the clock right"
        )
        raise InvalidSettingError(msg)
    return moment_instant(last + timedelta(milliseconds=1), zone=UTC)


def _comparable(time: str) -> str:
    """An instant's text in 17 digits; seconds count as their last millisecond, as Hudi reads them."""
    return time[:_FULL_DIGITS] if len(time) >= _FULL_DIGITS else f"{time}{_LAST_MILLISECOND}"
