"""Hypothesis strategies for tables, policies and file slices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import moment_instant
from airflow_hudi_maint.core.model.partition import NULL_PARTITION_VALUE, PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.plan import ClusteringSettings, Layout, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics, Watermark
from airflow_hudi_maint.core.planning.policy_match import PolicyMatcher

NOW = datetime(2026, 11, 30, tzinfo=UTC)
FIELDS = ("a", "b", "c", "d")
DIGITS = st.sampled_from([str(number) for number in range(8, 13)])
VALUES = st.one_of(DIGITS, st.sampled_from(["x", "y", NULL_PARTITION_VALUE]))

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
instants = st.integers(0, 400 * 24).map(lambda hours: moment_instant(NOW - timedelta(hours=hours), zone=UTC))


def schemes(*, min_fields: int = 1) -> st.SearchStrategy[PartitionScheme]:
    """Hive-style schemes of up to four fields."""
    depths = st.integers(min_fields, len(FIELDS))
    return depths.map(lambda depth: PartitionScheme(fields=FIELDS[:depth], hive_style=True))


def partition(path: str, *, instant: str, total_bytes: int) -> PartitionStatistics:
    """A partition with one file."""
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=instant,
        total_bytes=total_bytes,
        file_group_count=1,
        log_file_count=0,
        log_file_bytes=0,
        base_file_bytes=(total_bytes,),
    )


@st.composite
def partitions(
    draw: st.DrawFn, scheme: PartitionScheme, *, values: st.SearchStrategy[str] = VALUES
) -> list[PartitionStatistics]:
    """The partitions of a table, in any order."""
    paths = draw(st.lists(st.tuples(*[values] * len(scheme.fields)), unique=True, max_size=25))
    return [
        partition(
            "/".join(f"{field}={value}" for field, value in zip(scheme.fields, path, strict=True)),
            instant=draw(instants),
            total_bytes=draw(st.integers(0, 1000)),
        )
        for path in paths
    ]


def table(rows: list[PartitionStatistics]) -> TableStatistics:
    """The statistics of a table with these partitions."""
    return TableStatistics(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        table_type="COPY_ON_WRITE",
        watermark=Watermark(requested_time="20261130000000000", completion_time="20261130000001000", pending=("x",)),
        gathered="full",
        reason="first gathering",
        gathered_at="2026-11-30T00:00:00+00:00",
        small_file_bytes=100,
        partitions=tuple(rows),
    )


def basis() -> PlanBasis:
    """The basis of a plan of that table."""
    return PlanBasis(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        watermark=Watermark(requested_time="20261130000000000"),
        created_at="2026-11-30T00:00:00+00:00",
        statistics_path="20261130000000000.json",
    )


def levels(fields: tuple[str, ...]) -> st.SearchStrategy[PartitionSpec]:
    """Specs over the first of these fields."""
    anything = st.one_of(st.none(), VALUES)
    return st.integers(0, len(fields)).flatmap(
        lambda depth: st.tuples(*[anything] * depth).map(
            lambda given: PartitionSpec(levels=tuple(zip(fields, given, strict=False)))
        )
    )


@st.composite
def ttl_policies(draw: st.DrawFn, scheme: PartitionScheme) -> TTLPolicy:
    """A policy that fits a scheme."""
    spec = draw(levels(scheme.fields))
    is_leaf = len(spec.levels) == len(scheme.fields)
    kind = PolicyKind.KEEP_BY_TIME if is_leaf else draw(st.sampled_from(PolicyKind))
    value = draw(st.integers(1, 1500 if kind is PolicyKind.KEEP_BY_SIZE else 4))
    if kind is PolicyKind.KEEP_BY_TIME:
        value *= 40
    switches = st.sampled_from([False, False, True])
    return TTLPolicy(
        spec=spec,
        kind=kind,
        value=value,
        source=draw(texts),
        expires_null=draw(switches),
        may_empty=draw(switches),
    )


@st.composite
def policy_sets(draw: st.DrawFn, scheme: PartitionScheme) -> PolicySet:
    """Policies that fit a scheme and of which no two could both win."""
    found = PolicySet(default=draw(st.one_of(st.none(), ttl_policies(scheme))))
    for policy in draw(st.lists(ttl_policies(scheme), max_size=4)):
        try:
            grown = PolicySet(explicit=(*found.explicit, policy), default=found.default)
            PolicyMatcher.of(grown)
        except ValueError:
            continue
        found = grown
    return found


@st.composite
def clustering_settings(draw: st.DrawFn) -> ClusteringSettings:
    """Settings that agree with each other."""
    small = draw(st.integers(1, 100))
    target = draw(st.integers(small + 1, 200))
    columns = draw(st.lists(st.sampled_from(["id", "ts"]), unique=True))
    return ClusteringSettings(
        target_file_bytes=target,
        small_file_bytes=small,
        max_group_bytes=draw(st.integers(target, 500)),
        max_groups=draw(st.one_of(st.none(), st.integers(1, 5))),
        sort_columns=tuple(columns),
        layout=draw(st.sampled_from(Layout)) if columns else Layout.LINEAR,
        min_input_files=draw(st.integers(1, 4)),
    )


@st.composite
def file_slices(draw: st.DrawFn, *, held: bool = True) -> dict[str, list[FileSlice]]:
    """The file slices of some partitions."""
    slices: dict[str, list[FileSlice]] = {}
    for path in draw(st.lists(st.sampled_from([f"day={n}" for n in range(6)]), unique=True)):
        sizes = draw(st.lists(st.integers(1, 150), max_size=12))
        slices[path] = [
            file_slice(
                path,
                f"f{number}",
                base_bytes=size,
                log_bytes=draw(st.integers(0, 3)),
                held_by=draw(st.sampled_from([None, None, None, "20261129000000000"])) if held else None,
            )
            for number, size in enumerate(sizes)
        ]
    return slices


def file_slice(
    path: str, file_id: str, *, base_bytes: int, log_bytes: int = 0, held_by: str | None = None
) -> FileSlice:
    """A file slice with a base file, and with a log file unless that has no bytes."""
    instant = "20261130000000000"
    log = LogFile(name=f".{file_id}", file_id=file_id, instant=instant, version=1, write_token="", bytes=log_bytes)
    return FileSlice(
        partition_path=path,
        file_id=file_id,
        base_instant=instant,
        base_file=BaseFile(name=file_id, file_id=file_id, instant=instant, bytes=base_bytes),
        log_files=(log,) if log_bytes else (),
        pending_instant=held_by,
    )
