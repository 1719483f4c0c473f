"""What is looked at before a clustering plan is made, and what is to be said of one that was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import bundle_version
from airflow_hudi_maint.core.errors import BundleError, CorruptTableError, InvalidSettingError, UnsupportedTableError
from airflow_hudi_maint.core.model.instant import known_moment
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.model.units import counted, human_count, human_duration
from airflow_hudi_maint.core.planning.small_file_copying import copying_fault
from airflow_hudi_maint.core.storage.copied_files import copied_files
from airflow_hudi_maint.core.storage.footer_statistics import facts_of
from airflow_hudi_maint.core.storage.schema import META_COLUMNS, table_schema

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.file_facts import FileFacts
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.storage.table import HudiTable, TableView

MAX_FOOTERS = 32
"""How many footers are read at most to count the nulls in sort columns."""

_BINARY_COPY_SINCE = (1, 1, 0)
_DROPS_LONE_GROUPS_SINCE = (1, 2, 0)
_KEEP_MIN = "hoodie.keep.min.commits"
_DEFAULT_KEEP_MIN = 20
_UNORDERED = ("map",)
_NESTED = ("record", "array", "map")


def check_format(table: HudiTable) -> None:
    """Raise UnsupportedTableError for a table whose base files are no Parquet."""
    if table.config.base_file_format != "PARQUET":
        msg = (
            f"Table {table.base_path} has base files of format {table.config.base_file_format}; only tables of Parquet "
            "files are clustered and have small files rewritten. Statistics and expiry take this table, too"
        )
        raise UnsupportedTableError(msg)


def check_sort_columns(table: HudiTable, settings: ClusteringSettings, *, timeline: Timeline) -> None:
    """Raise unless Hudi can sort by the columns: of the table itself, not within a record, and of a type with an order.

    UnknownColumnError for a name that there is not; InvalidSettingError for a field of a record or a meta column, which
    ``run_clustering`` refuses, and for a type that the layout cannot order.
    """
    if not settings.sort_columns:
        return
    schema = table_schema(table, timeline=timeline)
    schema.check_columns(settings.sort_columns)
    unordered = _UNORDERED if settings.layout is Layout.LINEAR else _NESTED
    for name in settings.sort_columns:
        if name in META_COLUMNS or "." in name:
            what = "a column of Hudi's own" if name in META_COLUMNS else "a field of a record"
            raise InvalidSettingError(f"sort column {name!r} is {what}: Hudi sorts by columns of the table only")
        kind = schema.by_name[name].type_name
        if kind in unordered:
            raise InvalidSettingError(
                f"sort column {name!r} is of type {kind}, which layout={settings.layout} cannot order"
            )


def known_version(workspace: Workspace) -> tuple[int, int, int] | None:
    """The release of the bundle; None where it cannot be told here, such as for a jar on another machine."""
    try:
        return bundle_version(workspace.bundle)
    except BundleError:
        return None


def check_execution_strategy(settings: ClusteringSettings, *, version: tuple[int, int, int] | None) -> None:
    """Raise BundleError for a strategy that the bundle lacks."""
    if settings.execution_strategy is ExecutionStrategy.BINARY_COPY and version and version < _BINARY_COPY_SINCE:
        since, used = (".".join(map(str, one)) for one in (_BINARY_COPY_SINCE, version))
        raise BundleError(
            f"execution_strategy={settings.execution_strategy} is in Hudi from {since} on, the bundle is of {used}; "
            f"take a later bundle, or {ExecutionStrategy.SORT_AND_SIZE}"
        )


def check_copying(workspace: Workspace, paths: Sequence[str], *, advice: str) -> None:
    """Raise InvalidSettingError where a binary copy of these base files would end in an error of Hudi's.

    Reads at most :data:`MAX_FOOTERS` footers. ``advice`` ends the message.
    """
    if workspace.table.config.is_merge_on_read:
        return  # Hudi encodes them
    fault = copying_fault(copied_files(workspace.table.storage, paths=_spread(paths, count=MAX_FOOTERS)))
    if fault is not None:
        raise InvalidSettingError(
            f"execution_strategy={ExecutionStrategy.BINARY_COPY} would fail on {counted(len(paths), 'file')} of "
            f"{workspace.table.base_path}, such as {paths[0]}: {fault} (a null pointer in 1.2.0). {advice}"
        )


def keeps_lone_groups(version: tuple[int, int, int] | None) -> bool:
    """Whether a release packs as Hudi did before 1.2."""
    return version is not None and version < _DROPS_LONE_GROUPS_SINCE


def warnings_of(workspace: Workspace, plan: ClusteringPlan, *, view: TableView, now: datetime) -> Iterator[str]:
    """What the maker of a plan that chooses something should know; reads at most :data:`MAX_FOOTERS` footers."""
    if plan.chosen:
        yield from _blocked_archival(workspace, view=view, now=now)
        is_copy = plan.settings.execution_strategy is ExecutionStrategy.BINARY_COPY
        if is_copy and workspace.table.config.is_merge_on_read:
            yield (
                f"execution_strategy={ExecutionStrategy.BINARY_COPY} copies files of copy-on-write tables only: on "
                f"this merge-on-read table Hudi does as by {ExecutionStrategy.SORT_AND_SIZE}"
            )
        if plan.settings.sort_columns:
            yield from _null_counts(workspace, plan)


def _blocked_archival(workspace: Workspace, *, view: TableView, now: datetime) -> Iterator[str]:
    """An older pending plan at which archival stops already: one more makes it no better."""
    plans = sorted(view.plans, key=lambda one: one.instant.requested_time)
    if not plans:
        return
    oldest = plans[0].instant.requested_time
    since = sum(one.requested_time > oldest for one in view.timeline.completed_writes)
    text = {**workspace.table.config.properties, **workspace.write_options}.get(_KEEP_MIN, "")
    if since < (int(text) if text.isdigit() else _DEFAULT_KEEP_MIN):
        return
    moment = known_moment(oldest, zone=workspace.table.zone)
    waits = f", pending for {human_duration(max((now - moment).total_seconds(), 0))}," if moment else ""
    yield (
        f"The {plans[0].kind} plan {oldest}{waits} holds archival back: {counted(since, 'write')} completed since. "
        "Execute it or roll it back first"
    )


def base_files_of(plan: ClusteringPlan) -> list[str]:
    """The base files that a plan rewrites, relative to the base path."""
    return [
        f"{group.partition_path}/{one.base_file_name}" if group.partition_path else one.base_file_name
        for entry in plan.chosen
        for group in entry.groups
        for one in group.inputs
        if one.base_file_name
    ]


def _null_counts(workspace: Workspace, plan: ClusteringPlan) -> Iterator[str]:
    paths = base_files_of(plan)
    looked_at = _spread(paths, count=MAX_FOOTERS)
    try:
        read = [one for one in facts_of(workspace.table.storage, paths=looked_at) if one is not None]
    except CorruptTableError as error:
        yield f"Nulls in the sort columns could not be counted: {error}"
        return
    for column in plan.settings.sort_columns:
        nulls, rows = _nulls(read, column=column)
        if nulls:
            share = f"{100 * nulls / rows:.1f}".removesuffix(".0")
            yield (
                f"Sort column {column!r} is null in {human_count(nulls)} of {human_count(rows)} rows ({share} %) of "
                f"{counted(len(read), 'file')} looked at, of {human_count(len(paths))}: those rows come first, together"
            )


def _nulls(read: Sequence[FileFacts], *, column: str) -> tuple[int, int]:
    """Nulls and rows over the files that tell; a file without the column is older than it, and has nulls only."""
    told = [(one.null_counts.get(column, one.rows), one.rows) for one in read]
    known = [(nulls, rows) for nulls, rows in told if nulls is not None]
    return sum(nulls for nulls, _ in known), sum(rows for _, rows in known)


def _spread(paths: Sequence[str], *, count: int) -> list[str]:
    """So many of the paths, evenly over them."""
    if len(paths) <= count:
        return list(paths)
    return [paths[number * len(paths) // count] for number in range(count)]
