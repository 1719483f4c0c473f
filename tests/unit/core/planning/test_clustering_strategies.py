from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, Decision, ExecutionStrategy
from airflow_hudi_maint.core.planning.clustering import clustering_options, plan_clustering
from airflow_hudi_maint.core.planning.clustering_candidates import Candidate, PartitionFacts
from airflow_hudi_maint.core.planning.clustering_strategies import SizeBased
from airflow_hudi_maint.core.planning.clustering_strategy import Ranked, Selecting
from airflow_hudi_maint.core.planning.clustering_strategy_names import STRATEGIES, load_strategy
from tests.unit.core.planning.builders import NOW, basis, file_slice

SETTINGS = ClusteringSettings(target_file_bytes=100, small_file_bytes=60, max_group_bytes=100)
HERE = __name__
DOCUMENTATION = Path(__file__).parents[4] / "docs" / "clustering.md"


@dataclass(frozen=True, kw_only=True)
class EvenDays(SizeBased):
    """A strategy of somebody else's: days with an even number, the last one first."""

    word: str = "odd"

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude odd days."""
        del now
        return {one.partition_path: self.word for one in partitions if int(one.partition_path[-1]) % 2}

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Put the last day in front, and say so."""
        del now
        paths = sorted((one.partition_path for one in candidates), reverse=True)
        return [Ranked(partition_path=path, remark=f"place {place}") for place, path in enumerate(paths, 1)]


class Forgetful(SizeBased):
    """A strategy that loses a candidate."""

    def rank(self, candidates: Sequence[Candidate], *, now: datetime) -> Sequence[Ranked]:
        """Rank all but one."""
        return super().rank(candidates[1:], now=now)


class Silent(SizeBased):
    """A strategy that gives no reason."""

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude without a word."""
        del now
        return {partitions[0].partition_path: ""}


class Inventive(SizeBased):
    """A strategy that names what is not there."""

    def exclude(self, partitions: Sequence[PartitionFacts], *, now: datetime) -> Mapping[str, str]:
        """Exclude a partition of another table."""
        del partitions, now
        return {"day=9": "why not"}


class NoStrategy:
    """A class without any of the methods."""


def plan(name: str, *, count: int = 4, settings: ClusteringSettings = SETTINGS, **options: object) -> ClusteringPlan:
    """Plan ``count`` days of two small files each."""
    slices = {
        f"day={day}": [file_slice(f"{day}-{number}", 10, partition_path=f"day={day}") for number in range(2)]
        for day in range(1, count + 1)
    }
    selecting = Selecting(strategy=load_strategy(name, options), now=NOW, name=name)
    return plan_clustering(slices, settings, basis=basis(), selecting=selecting)


def test_a_class_by_its_import_path_is_a_strategy() -> None:
    """It filters, ranks and says why, and the plan names it with its options."""
    found = plan(f"{HERE}.EvenDays", settings=replace(SETTINGS, max_groups=1), word="an odd day")
    assert {
        "day=1": (Decision.KEEP, "an odd day"),
        "day=2": (Decision.KEEP, "left for the next run: max_groups=1 reached (1 group needed); place 2"),
        "day=3": (Decision.KEEP, "an odd day"),
        "day=4": (Decision.CLUSTER, "2 small files of 20 B become 1 in 1 group; place 1"),
    } == {entry.partition_path: (entry.decision, entry.reason) for entry in found.entries}
    assert found.strategy == f"{HERE}.EvenDays"


def test_the_class_in_the_documentation_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What docs/clustering.md shows as a strategy of one's own is one."""
    blocks = DOCUMENTATION.read_text(encoding="utf-8").split("```python\n")[1:]
    (code,) = (block.split("```")[0] for block in blocks if "class ManyFiles" in block)
    (tmp_path / "my_strategies.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = plan("my_strategies.ManyFiles", at_least=3)
    assert {"2 small files, fewer than at_least=3"} == {entry.reason for entry in found.entries}
    assert len(plan("my_strategies.ManyFiles", at_least=2).chosen) == 4


def test_a_colon_before_the_class_will_do_too() -> None:
    """``package.module:Class`` is how entry points are written."""
    assert isinstance(load_strategy(f"{HERE}:EvenDays", {}), EvenDays)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("recent", {}, "known are size_based, recent_days, .*benefit, and the import path"),
        ("nowhere.Strategy", {}, "cannot be imported: No module named 'nowhere'"),
        (f"{HERE}.Unwritten", {}, f"is no class: module {HERE} has 'EvenDays', 'Forgetful'"),
        (f"{HERE}.NoStrategy", {}, "it lacks needs_history, max_bytes, exclude, rank; derive it from .*SizeBased"),
        (f"{HERE}.EvenDays", {"words": "x"}, "cannot be made with .*words.*; it takes word"),
        ("recent_days", {"look": 3}, "has no option 'look'; it takes lookback, skip_from_latest"),
        ("size_based", {"lookback": 3}, "has no option 'lookback'; it takes none"),
        ("recent_days", {"lookback": "three"}, "lookback='three' is not a whole number"),
        ("recent_days", {"lookback": True}, "lookback=True is not a whole number"),
        ("recent_days", {"lookback": 0}, "lookback=0 is too small; expected at least 1"),
        ("recent_days", {"skip_from_latest": -1}, "skip_from_latest=-1 is too small; expected at least 0"),
        ("largest", {"count": 0}, "count=0 is too small"),
        ("cold", {}, "needs the option idle_days"),
        ("cold", {"idle_days": 0}, "idle_days=0 is too small"),
        ("cold", {"idle_days": "soon"}, "idle_days='soon' is not a number"),
        ("cold", {"idle_days": "nan"}, "idle_days='nan' is not a number"),
        ("benefit", {"max_bytes": 0}, "max_bytes=0 is too small"),
        ("benefit", {"aging_days": 0}, "aging_days=0 is too small"),
        ("benefit", {"sort_weight": -1}, "sort_weight=-1 is negative"),
        ("selected_partitions", {}, "needs partitions, begin, end or regex"),
        ("selected_partitions", {"partitions": ["a"], "regex": "a"}, "partitions or regex, not both"),
        ("selected_partitions", {"begin": "b", "end": "a"}, "begin='b' is after end='a'"),
        ("selected_partitions", {"regex": "day=("}, "is no regular expression"),
        ("selected_partitions", {"partitions": [1]}, "partitions=.1. is not a list of names"),
        ("selected_partitions", {"partitions": "[1"}, "partitions='.1' is not a list of names"),
        ("selected_partitions", {"begin": 3}, "begin=3 is not a text"),
    ],
)
def test_what_cannot_be_a_strategy_is_refused_with_what_could(
    name: str, options: Mapping[str, object], message: str
) -> None:
    """A wrong name, class, option or value is an error that names it and what there is."""
    with pytest.raises(InvalidSettingError, match=message):
        load_strategy(name, options)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Forgetful", "has to rank each of 4 candidates once; wrong are 'day=1'"),
        ("Silent", "gives no reason to exclude 'day=1'"),
        ("Inventive", "excludes partitions that there are not: 'day=9'"),
    ],
)
def test_a_strategy_that_breaks_its_word_is_found_out(name: str, message: str) -> None:
    """Nothing is lost without a reason, whatever a strategy does."""
    with pytest.raises(InvalidSettingError, match=message):
        plan(f"{HERE}.{name}")


def test_a_selected_partition_that_there_is_not_is_an_error() -> None:
    """A list that names nothing of the table is a mistake, not an empty selection."""
    with pytest.raises(UnknownPartitionError, match="'day=7'; there is 'day=1'"):
        plan("selected_partitions", partitions="day=1,day=7")


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_table_without_partitions_makes_an_empty_plan(name: str) -> None:
    """Each strategy takes an empty table."""
    options = {"cold": {"idle_days": 1}, "selected_partitions": {"begin": "a"}}.get(name, {})
    assert plan(name, count=0, **options).entries == ()


def test_options_come_as_text_from_templates_and_command_lines() -> None:
    """Numbers and lists may be written out, and a null is as if it were not given."""
    assert load_strategy("recent_days", {"lookback": " 3", "skip_from_latest": None}) == load_strategy(
        "recent_days", {"lookback": 3}
    )
    assert load_strategy("selected_partitions", {"partitions": '["day=1,2"]'}) == load_strategy(
        "selected_partitions", {"partitions": ["day=1,2"]}
    )


def test_java_and_hudi_order_paths_by_utf16() -> None:
    """A character outside the basic plane comes before U+FFFF, as it does for Hudi."""
    slices = {
        path: [file_slice(f"{path}{number}", 10, partition_path=path) for number in range(2)]
        for path in ("\U00010000", "￿")
    }
    selecting = Selecting(strategy=load_strategy("recent_days", {"lookback": 1}), now=NOW)
    assert ["￿"] == [
        entry.partition_path for entry in plan_clustering(slices, SETTINGS, basis=basis(), selecting=selecting).chosen
    ]


def test_sorted_partitions_are_sorted_again_when_they_are_named() -> None:
    """A partition that single-file sort would leave alone is taken when the caller asks for it by name."""
    settings = replace(SETTINGS, sort_columns=("id",), execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT)
    slices = {"day=1": [file_slice("a", 10, partition_path="day=1")]}
    moment = datetime(2026, 11, 1, tzinfo=UTC)
    facts = replace(
        PartitionFacts.of("day=1", slices["day=1"], settings=settings), last_change=moment, last_sorted=moment
    )
    selecting = Selecting(strategy=SizeBased(), now=NOW, facts={"day=1": facts})
    left = plan_clustering(slices, settings, basis=basis(), selecting=selecting)
    named = plan_clustering(slices, settings, basis=basis(), selecting=selecting, partitions=["day=1"])
    assert ([], ["day=1"]) == (
        [one.partition_path for one in left.chosen],
        [one.partition_path for one in named.chosen],
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"execution_strategy": ExecutionStrategy.SINGLE_FILE_SORT}, "single_file_sort needs sort_columns"),
        (
            {"execution_strategy": ExecutionStrategy.BINARY_COPY, "sort_columns": ("id",)},
            "binary_copy copies rows as they lie and cannot sort by id",
        ),
    ],
)
def test_an_execution_strategy_has_to_agree_with_the_sort_columns(settings: dict[str, object], message: str) -> None:
    """Sorting needs columns, and copying cannot sort."""
    with pytest.raises(HudiMaintError, match=message):
        ClusteringSettings(**settings)  # type: ignore[arg-type]


def test_hudi_is_told_the_execution_strategy_and_the_plan_strategy_that_goes_with_it() -> None:
    """Hudi writes the class into its plan, and single-file sort has groups of one file."""
    keys = ("hoodie.clustering.execution.strategy.class", "hoodie.clustering.plan.strategy.class")
    run = "org.apache.hudi.client.clustering.run.strategy"
    plans = "org.apache.hudi.client.clustering.plan.strategy"
    copied = clustering_options(ClusteringSettings(execution_strategy=ExecutionStrategy.BINARY_COPY), group_count=1)
    in_place = ClusteringSettings(sort_columns=("id",), execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT)
    assert [
        [f"{run}.SparkBinaryCopyClusteringExecutionStrategy", None],
        [f"{run}.SparkSingleFileSortExecutionStrategy", f"{plans}.SparkSingleFileSortPlanStrategy"],
        [None, None],
    ] == [
        [options.get(key) for key in keys]
        for options in (
            copied,
            clustering_options(in_place, group_count=1),
            clustering_options(SETTINGS, group_count=1),
        )
    ]


def test_hudi_counts_the_groups_that_it_leaves_out() -> None:
    """The limit that Hudi gets reaches past a group that it drops, or it would plan nothing."""
    sizes = {"a": 58, "b": 57, "c": 50, "d": 45}
    settings = replace(SETTINGS, max_groups=1)
    slices = {"day=1": [file_slice(name, size, partition_path="day=1") for name, size in sizes.items()]}
    found = plan_clustering(slices, settings, basis=basis())
    assert (1, 3, ("c", "d")) == (found.group_count, found.group_limit, found.chosen[0].file_ids)
