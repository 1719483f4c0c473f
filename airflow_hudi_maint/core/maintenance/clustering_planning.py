"""Plan clustering and small-file compaction: what the table says is worth rewriting, as a document."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.maintenance.clustering_checks import (
    base_files_of,
    check_copying,
    check_execution_strategy,
    check_format,
    check_sort_columns,
    keeps_lone_groups,
    known_version,
    warnings_of,
)
from airflow_hudi_maint.core.maintenance.clustering_facts import partition_facts
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.clustering import plan_clustering as plan_clustering_slices
from airflow_hudi_maint.core.planning.clustering_strategy import ClusteringStrategy, Selecting
from airflow_hudi_maint.core.planning.clustering_strategy_names import DEFAULT_STRATEGY, load_strategy
from airflow_hudi_maint.core.planning.small_files import SMALL_FILES_STRATEGY, Worthwhile, plan_small_file_compaction
from airflow_hudi_maint.core.storage.changes import watermark_of

if TYPE_CHECKING:
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.document import JsonMapping
    from airflow_hudi_maint.core.model.file_slice import FileSlice
    from airflow_hudi_maint.core.model.timeline import Timeline
    from airflow_hudi_maint.core.planning.clustering_candidates import PartitionFacts


@dataclass(frozen=True, kw_only=True)
class PlannedClustering:
    """A clustering plan of ours (not yet Hudi's), and the file that holds it."""

    plan: ClusteringPlan
    path: str


def plan_clustering(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None = None,
    strategy: str = DEFAULT_STRATEGY,
    strategy_options: Mapping[str, object] | None = None,
) -> PlannedClustering:
    """Plan which partitions are clustered and write the plan; changes nothing on the table.

    ``strategy`` is the name of one of ours or the import path of a class, made with ``strategy_options``.

    Raises UnknownColumnError for a sort column, and UnknownPartitionError for a partition, that the table lacks;
    InvalidSettingError for a strategy or an option that there is not, a column that Hudi does not sort by, and files
    that Hudi fails to copy; and BundleError for an execution strategy that the bundle lacks.
    """
    chosen = load_strategy(strategy, strategy_options or {})
    asked = _Asked(strategy=chosen, name=strategy, options=_json(strategy_options or {}))
    return _plan(
        workspace, now=now, settings=settings, partitions=partitions, planner=plan_clustering_slices, asked=asked
    )


def plan_small_files(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None = None,
    worthwhile: Worthwhile | None = None,
) -> PlannedClustering:
    """Plan which partitions have small files that are worth rewriting, without a sort; changes nothing on the table."""
    worth = worthwhile or Worthwhile()
    planner = partial(plan_small_file_compaction, worthwhile=worth)
    asked = _Asked(strategy=worth.strategy, name=SMALL_FILES_STRATEGY, options=worth.strategy_options)
    return _plan(workspace, now=now, settings=settings, partitions=partitions, planner=planner, asked=asked)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A strategy, and how it was asked for."""

    strategy: ClusteringStrategy
    name: str
    options: JsonMapping

    def selecting(
        self,
        workspace: Workspace,
        slices: Mapping[str, Sequence[FileSlice]],
        settings: ClusteringSettings,
        *,
        timeline: Timeline,
        now: datetime,
    ) -> Selecting:
        """The strategy with what it is given: facts with moments only where those are asked for."""
        facts: Mapping[str, PartitionFacts] = {}
        if self.strategy.needs_history or settings.execution_strategy is ExecutionStrategy.SINGLE_FILE_SORT:
            facts = partition_facts(workspace, slices, settings, timeline=timeline, now=now)
        here = now.astimezone(workspace.table.zone)
        return Selecting(strategy=self.strategy, now=here, name=self.name, options=self.options, facts=facts)


def _plan(
    workspace: Workspace,
    *,
    now: datetime,
    settings: ClusteringSettings,
    partitions: Collection[str] | None,
    planner: Callable[..., ClusteringPlan],
    asked: _Asked,
) -> PlannedClustering:
    table = workspace.table
    check_format(table)
    version = known_version(workspace)
    check_execution_strategy(settings, version=version)
    settings = replace(settings, keeps_lone_groups=keeps_lone_groups(version))
    timeline = table.timeline()
    check_sort_columns(table, settings, timeline=timeline)
    view = table.view(timeline)
    if partitions is not None:
        table.check_partitions(partitions, known=view.partition_paths)
    slices = {path: view.merged_slices(path) for path in view.partition_paths}
    selecting = asked.selecting(workspace, slices, settings, timeline=timeline, now=now)
    basis = workspace.basis(watermark_of(timeline), now=now)
    plan = planner(slices, settings, basis=basis, partitions=partitions, selecting=selecting)
    # Hudi's strategies count a dropped partition until the cleaner has been there; for people it is gone.
    seen = tuple(one for one in plan.entries if slices[one.partition_path] or partitions is not None)
    plan = replace(plan, entries=seen)
    if plan.chosen and settings.execution_strategy is ExecutionStrategy.BINARY_COPY:
        check_copying(workspace, base_files_of(plan), advice=f"Take {ExecutionStrategy.SORT_AND_SIZE}")
    warnings = tuple(warnings_of(workspace, plan, view=view, now=now))
    plan = replace(plan, warnings=(*plan.warnings, *warnings))
    path = workspace.documents.write_kept(
        "plans", stem=f"{plan.basis.base_instant}-{plan.purpose}", document=plan.to_json()
    )
    workspace.log(describe(plan))
    return PlannedClustering(plan=plan, path=path)


def _json(options: Mapping[str, object]) -> JsonMapping:
    """Options as the plan's document keeps them; raises InvalidSettingError for what is no JSON."""
    try:
        read: JsonMapping = json.loads(json.dumps(dict(options)))
    except (TypeError, ValueError) as error:
        raise InvalidSettingError(f"strategy_options={dict(options)!r} cannot be written as JSON: {error}") from error
    return read


def describe(plan: ClusteringPlan) -> str:
    """Say in one sentence what a plan rewrites."""
    files = sum(len(entry.file_ids) for entry in plan.chosen)
    size = sum(entry.input_bytes for entry in plan.chosen)
    outputs = sum(entry.output_file_count for entry in plan.chosen)
    return (
        f"{plan.purpose.capitalize()} plan on {plan.basis.base_instant}: "
        f"{len(plan.chosen)} of {counted(len(plan.entries), 'partition')}, "
        f"{counted(files, 'file')} ({human_bytes(size)}) into about {outputs}, in {counted(plan.group_count, 'group')}"
    )
