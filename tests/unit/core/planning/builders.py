"""Short ways to write the values that planners take."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import ExpiryPlan, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics, Watermark
from airflow_hudi_maint.core.planning.expiry import ExpiryGuards, plan_expiry

INSTANT = "20261130000000000"
NOW = datetime(2026, 11, 30, tzinfo=UTC)
NO_LIMITS = ExpiryGuards(
    max_partition_share=None,
    max_byte_share=None,
    max_record_share=None,
    max_partitions=None,
    min_partitions_left=None,
    max_growth=None,
    max_quiet_days=None,
    max_clock_skew_minutes=None,
)


def partition(
    path: str, *, modified: str = INSTANT, total_bytes: int = 1, records: int | None = None
) -> PartitionStatistics:
    """One partition with one file."""
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=modified,
        total_bytes=total_bytes,
        file_group_count=1,
        log_file_count=0,
        log_file_bytes=0,
        base_file_bytes=(total_bytes,),
        record_count=records,
    )


def statistics(*partitions: PartitionStatistics) -> TableStatistics:
    """Statistics of a table with these partitions."""
    return TableStatistics(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        table_type="COPY_ON_WRITE",
        watermark=Watermark(requested_time=INSTANT),
        gathered="full",
        reason="first gathering",
        gathered_at="2026-11-30T00:00:00+00:00",
        small_file_bytes=100,
        partitions=partitions,
    )


def basis() -> PlanBasis:
    """The basis of a plan of that table."""
    return PlanBasis(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        watermark=Watermark(requested_time=INSTANT),
        created_at="2026-11-30T00:00:00+00:00",
    )


def policies(*lines: str) -> PolicySet:
    """Read policies written as ``[default] spec KIND value [option[=text]]...``; an option without a text is true."""
    entries: list[object] = []
    for line in lines:
        words = line.split()
        is_default = words[0] == "default"
        spec, kind, value, *options = words[is_default:]
        entry: dict[str, object] = {"partitionSpec": spec, "policy": kind, "policyValue": int(value)}
        for option in options:
            key, equals, text = option.partition("=")
            entry[key] = text if equals else True
        entries.append({**entry, "default": is_default})
    return PolicySet.from_json(entries)


def expiry(
    *partitions: PartitionStatistics,
    by: PolicySet,
    fields: tuple[str, ...] = ("user_id", "ts"),
    field_types: dict[str, str] | None = None,
    pending: dict[str, str] | None = None,
    now: datetime = NOW,
    guards: ExpiryGuards = NO_LIMITS,
    created: dict[str, str] | None = None,
    previous_expired: int | None = None,
) -> ExpiryPlan:
    """Plan the expiry of a hive-style table in UTC; its fields are text unless ``field_types`` says otherwise."""
    return plan_expiry(
        statistics(*partitions),
        by,
        scheme=PartitionScheme(fields=fields, hive_style=True),
        field_types=dict.fromkeys(fields, "string") if field_types is None else field_types,
        pending=pending or {},
        basis=basis(),
        zone=UTC,
        now=now,
        guards=guards,
        created=created or {},
        previous_expired=previous_expired,
    )


def expired(plan: ExpiryPlan) -> list[str]:
    """The paths that a plan drops."""
    return [entry.partition_path for entry in plan.expired]


def reasons(plan: ExpiryPlan) -> dict[str, str]:
    """The reason of each partition."""
    return {entry.partition_path: entry.reason for entry in plan.entries}


def file_slice(
    file_id: str,
    base_bytes: int | None,
    *,
    log_bytes: int = 0,
    partition_path: str = "day=1",
    held_by: str | None = None,
) -> FileSlice:
    """A slice with a base file, unless ``base_bytes`` is None, and with a log file, unless ``log_bytes`` is 0."""
    base = None
    if base_bytes is not None:
        base = BaseFile(name=f"{file_id}.parquet", file_id=file_id, instant=INSTANT, bytes=base_bytes)
    log = LogFile(name=f".{file_id}", file_id=file_id, instant=INSTANT, version=1, write_token="", bytes=log_bytes)
    return FileSlice(
        partition_path=partition_path,
        file_id=file_id,
        base_instant=INSTANT,
        base_file=base,
        log_files=(log,) if log_bytes else (),
        pending_instant=held_by,
    )


def instant(requested_time: str, action: Action, state: State) -> Instant:
    """An instant of a table version without completion times."""
    return Instant(
        requested_time=requested_time,
        action=action,
        state=state,
        completion_time=None,
        file_name=f"{requested_time}.{action}",
    )
