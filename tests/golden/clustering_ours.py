"""What we plan for a case of ``clustering_cases.py``, and how two plans are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy, PlanBasis
from airflow_hudi_maint.core.model.statistics import Watermark
from airflow_hudi_maint.core.planning.clustering import plan_clustering
from airflow_hudi_maint.core.planning.clustering_groups import pack_groups, packing_bytes
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting
from airflow_hudi_maint.core.planning.clustering_strategy_names import load_strategy
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.clustering_cases import Case

Slices = Mapping[str, Sequence[FileSlice]]
Groups = Mapping[str, Sequence[str]]


def slices_of(path: Path) -> Slices:
    """The slices of a table, as planning reads them."""
    table = HudiTable.open(str(path))
    view = table.view(table.timeline())
    return {partition: view.merged_slices(partition) for partition in view.partition_paths}


def our_plan(case: Case, *, path: Path, release: str, hour: int = 0) -> ClusteringPlan:
    """Plan a case as of an hour, for a release of Hudi."""
    given = dict(case.settings)
    execution = ExecutionStrategy(given.pop("execution_strategy", "sort_and_size"))
    settings = ClusteringSettings(
        **{**given, "sort_columns": tuple(given.get("sort_columns", ()))},
        execution_strategy=execution,
        keeps_lone_groups=release != "1.2.0",
    )
    selecting = Selecting(
        strategy=load_strategy(case.strategy, case.options),
        now=datetime(2026, 11, 30, hour, tzinfo=UTC),
        name=case.strategy,
    )
    basis = PlanBasis(
        base_path=str(path), table_name="trips", table_version=9, watermark=Watermark(requested_time=""), created_at=""
    )
    return plan_clustering(slices_of(path), settings, basis=basis, selecting=selecting)


def our_groups(plan: ClusteringPlan) -> dict[str, list[str]]:
    """The groups of a plan in the form of the answers."""
    return {
        entry.partition_path: [
            f"{group.output_file_count} {' '.join(one.file_id.removesuffix('-0') for one in group.inputs)}"
            for group in entry.groups
        ]
        for entry in plan.chosen
    }


def packed(slices: Sequence[FileSlice], settings: ClusteringSettings) -> list[str]:
    """The groups of a partition in the form of the answers, worth it or not: of the slices that no plan holds."""
    return [
        f"{group.output_file_count} {' '.join(one.file_id.removesuffix('-0') for one in group.slices)}"
        for group in pack_groups([one for one in slices if not one.pending_instant], settings)
    ]


def comparable(groups: Groups, slices: Slices) -> dict[str, list[tuple[int, list[str]]]]:
    """Groups so that those of Hudi and ours are equal where they are alike.

    Hudi has no order among files of equal size, so that such a file stands for its size. Groups, and files in them,
    come in the order of these texts.
    """
    return {path: sorted(_read(groups[path], slices[path])) for path in groups}


def _read(lines: Iterable[str], slices: Sequence[FileSlice]) -> Iterable[tuple[int, list[str]]]:
    sizes = {one.file_id.removesuffix("-0"): packing_bytes(one) for one in slices}
    for line in lines:
        outputs, *ids = line.split()
        has_equal = {one for one in ids if list(sizes.values()).count(sizes[one]) > 1}
        yield int(outputs), sorted(str(sizes[one]) if one in has_equal else one for one in ids)


def files(groups: Iterable[str]) -> tuple[int, int]:
    """How many files some groups take, and how many they make."""
    lines = [line.split() for line in groups]
    return sum(len(line) - 1 for line in lines), sum(int(line[0]) for line in lines)
