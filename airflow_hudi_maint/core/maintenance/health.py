"""Check the health of a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import check_bundle
from airflow_hudi_maint.core.errors import BundleError, CorruptTableError, UnhealthyTableError
from airflow_hudi_maint.core.maintenance.statistics import gather_statistics
from airflow_hudi_maint.core.model.health import Severity
from airflow_hudi_maint.core.planning.health import judge_health
from airflow_hudi_maint.core.storage.health_documents import write_health
from airflow_hudi_maint.core.storage.health_facts import read_health_facts

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.health import TableHealth
    from airflow_hudi_maint.core.model.orphan import OrphanFile
    from airflow_hudi_maint.core.model.statistics import TableStatistics
    from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds


@dataclass(frozen=True, kw_only=True)
class CheckedHealth:
    """What was found about a table, and the file that holds it."""

    health: TableHealth
    path: str


def check_health(
    workspace: Workspace,
    *,
    now: datetime,
    thresholds: HealthThresholds | None = None,
    statistics: TableStatistics | None = None,
    orphans: bool = False,
) -> CheckedHealth:
    """Look at a table, judge it and write what was found as ``health/<moment>.json``; no engine is started.

    ``statistics`` are those of an earlier step; None gathers them, incrementally where that is possible. Where the
    table is too broken for that, the signals that rest on file sizes are unknown and the others are there. A second
    run on an unchanged table finds the same but for the ages. Statistics are gathered before the timeline is read for
    the rest, so a write that completes in between is counted in the latter only. ``orphans`` lists every partition, for
    files that nothing refers to.

    Raises StorageError; a sick table raises nothing: see :func:`refuse_unhealthy`.
    """
    unread: dict[str, str] = {}
    if statistics is None:
        try:
            statistics = gather_statistics(workspace, now=now).statistics
        except CorruptTableError as error:
            workspace.log(f"Warning: no statistics: {error}")
            unread["statistics"] = f"statistics could not be gathered: {error}"
    facts = read_health_facts(
        workspace.table,
        statistics=statistics,
        write_options=workspace.write_options,
        bundle=workspace.bundle,
        bundle_problem=_bundle_problem(workspace),
        unread=unread,
    )
    if orphans:
        facts = replace(facts, orphans=_orphans(workspace))
    health = judge_health(facts, now=now, thresholds=thresholds)
    path = write_health(workspace.documents, health=health)
    counts = ", ".join(f"{count} {severity}" for severity, count in health.counts().items() if count)
    workspace.log(f"Health of {health.table_name} as of {health.as_of_instant}: {health.severity} ({counts})")
    for one in health.worst_first:
        if one.severity is not Severity.OK:
            prefix = "" if one.severity is Severity.UNKNOWN else "Warning: "
            workspace.log(f"{prefix}{one.name} is {one.severity}: {one.found} {one.advice}")
    return CheckedHealth(health=health, path=path)


def refuse_unhealthy(health: TableHealth, *, fail_on: Severity | None) -> None:
    """Raise UnhealthyTableError when a signal is as bad as ``fail_on`` or worse; None accepts everything.

    A signal that is unknown is no reason.
    """
    bad = [one for one in health.worst_first if fail_on is not None and one.severity.rank >= fail_on.rank]
    bad = [one for one in bad if one.severity in (Severity.WARNING, Severity.CRITICAL)]
    if bad:
        named = " ".join(f"{one.name} is {one.severity}: {one.found} {one.advice}" for one in bad)
        raise UnhealthyTableError(f"Table {health.base_path} is not healthy. {named}")


def _orphans(workspace: Workspace) -> tuple[OrphanFile, ...]:
    """The files of every partition that nothing refers to; the timeline has to be older than the listing."""
    view = workspace.table.view(workspace.table.timeline(), listing="directory")
    return tuple(one for path in view.partition_paths for one in view.orphans(path))


def _bundle_problem(workspace: Workspace) -> str | None:
    try:
        check_bundle(workspace.bundle, table_version=workspace.table.config.table_version)
    except BundleError as error:
        return str(error)
    return None
