"""Runs ``tests/cases/clustering.txt``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy
from airflow_hudi_maint.core.planning.clustering import plan_clustering
from airflow_hudi_maint.core.planning.clustering_candidates import PartitionFacts
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting
from airflow_hudi_maint.core.planning.clustering_strategy_names import load_strategy
from airflow_hudi_maint.core.planning.small_files import Worthwhile, plan_small_file_compaction
from tests.unit.core.planning.builders import basis, file_slice
from tests.unit.core.planning.case_files import Case, read_cases

_FACTS = {
    "changed": "last_change",
    "clustered": "last_clustered",
    "sorted": "last_sorted",
    "oldest": "oldest_small_file",
}


def slices_of(path: str, words: list[str]) -> list[FileSlice]:
    """Read slices written as ``base``, ``base+log`` or ``-+log`` bytes, with ``@instant`` when a plan holds one."""
    slices = []
    for number, word in enumerate(words):
        size, _, held_by = word.partition("@")
        base, _, log = size.partition("+")
        slices.append(
            file_slice(
                f"f{number:02d}",
                None if base == "-" else int(base),
                log_bytes=int(log or 0),
                partition_path=path,
                held_by=held_by or None,
            )
        )
    return slices


def plan_of(case: Case) -> ClusteringPlan:
    """Plan a case."""
    given = dict(pair.split("=") for pair in case.setting("settings").split())
    settings = ClusteringSettings(
        target_file_bytes=int(given["target"]),
        small_file_bytes=int(given["small"]),
        max_group_bytes=int(given["group"]),
        max_groups=int(given["max_groups"]) if "max_groups" in given else None,
        sort_columns=tuple(given["sort"].split(",")) if "sort" in given else (),
        min_input_files=int(given.get("min_input_files", "2")),
        execution_strategy=ExecutionStrategy(given.get("execution", "sort_and_size")),
        keeps_lone_groups=given.get("lone") == "keep",
    )
    slices = {given.split()[0]: slices_of(given.split()[0], given.split()[1:]) for given, _ in case.lines}
    pending = dict(pair.rsplit("@", 1) for pair in case.setting("pending").split())
    if case.setting("job") == "small-files":
        bounds = Worthwhile(**{name: int(given[name]) for name in given if name.endswith("removed")})
        return plan_small_file_compaction(slices, settings, basis=basis(), pending=pending, worthwhile=bounds)
    return plan_clustering(
        slices, settings, basis=basis(), pending=pending, selecting=selecting_of(case, slices, settings=settings)
    )


def selecting_of(
    case: Case, slices: Mapping[str, Sequence[FileSlice]], *, settings: ClusteringSettings
) -> Selecting | None:
    """Read ``strategy: name option=value …``, ``now: moment`` and ``facts: partition what=moment …``."""
    name, *options = case.setting("strategy", "size_based").split()
    facts = {path: PartitionFacts.of(path, slices[path], settings=settings) for path in slices}
    for line in case.settings.get("facts", ()):
        path, *moments = line.split()
        told = {_FACTS[what]: moment_of(text) for what, _, text in (one.partition("=") for one in moments)}
        facts[path] = replace(facts[path], **told)  # type: ignore[arg-type]
    if name == "size_based" and "facts" not in case.settings:
        return None
    return Selecting(
        strategy=load_strategy(name, dict(pair.split("=", 1) for pair in options)),
        now=moment_of(case.setting("now", "2026-11-30")),
        name=name,
        facts=facts,
    )


def moment_of(text: str) -> datetime:
    """A moment in UTC, written as ``2026-11-30`` or ``2026-11-30T05:00``."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("case", read_cases("clustering.txt"), ids=lambda case: case.title)
def test_clustering(case: Case) -> None:
    """Each partition of a case is clustered or not for the reason that the case gives."""
    entries = {entry.partition_path: f"{entry.decision}: {entry.reason}" for entry in plan_of(case).entries}
    assert case.lines == [(given, entries[given.split()[0]]) for given, _ in case.lines]
