from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.model.plan import ClusteringSettings, Decision
from airflow_hudi_maint.core.planning.clustering import clustering_options, plan_clustering
from airflow_hudi_maint.core.planning.clustering_groups import ASSUMED_BASE_FILE_BYTES, pack_groups
from airflow_hudi_maint.core.planning.small_files import Worthwhile, plan_small_file_compaction
from tests.unit.core.planning.builders import basis, file_slice

SETTINGS = ClusteringSettings(target_file_bytes=100, small_file_bytes=60, max_group_bytes=100)
MEBIBYTE = 1024 * 1024


def small_files(*partitions: str, count: int = 2) -> dict[str, list]:  # type: ignore[type-arg]
    return {path: [file_slice(f"{path}-{n}", 10, partition_path=path) for n in range(count)] for path in partitions}


def test_an_entry_has_the_file_groups_of_its_groups() -> None:
    """A chosen partition lists what is rewritten, and how many groups and files that makes."""
    slices = {"day=1": [file_slice(name, size) for name, size in {"a": 10, "b": 50, "c": 99, "d": 45, "e": 60}.items()]}
    entry = plan_clustering(slices, SETTINGS, basis=basis()).entries[0]
    assert (("b", "d"), 95, 1, 1) == (entry.file_ids, entry.input_bytes, entry.group_count, entry.output_file_count)


def test_a_plan_of_more_than_thirty_groups_leaves_none_out() -> None:
    """Hudi's own limit of 30 groups is lifted to what the plan needs."""
    plan = plan_clustering(small_files(*(f"day={n}" for n in range(36))), SETTINGS, basis=basis())
    options = clustering_options(SETTINGS, group_count=plan.group_count)
    assert (36, "36") == (len(plan.chosen), options["hoodie.clustering.plan.strategy.max.num.groups"])
    assert plan.warnings == ()


def test_a_limit_that_leaves_partitions_out_is_named_in_a_warning() -> None:
    """The plan says how many of how many partitions it takes, and which setting left the rest."""
    settings = ClusteringSettings(target_file_bytes=100, small_file_bytes=60, max_group_bytes=100, max_groups=30)
    plan = plan_clustering(small_files(*(f"day={n}" for n in range(36))), settings, basis=basis())
    expected = (
        "30 of 36 partitions with small files are planned; the rest is left for the next run, because max_groups=30"
    )
    assert (expected,) == plan.warnings


def test_only_the_named_partitions_are_considered() -> None:
    """Partitions that were not named have no entry."""
    plan = plan_clustering(small_files("day=1", "day=2"), SETTINGS, basis=basis(), partitions=["day=2", "day=2"])
    assert [("day=2", Decision.CLUSTER)] == [(entry.partition_path, entry.decision) for entry in plan.entries]


def test_unknown_partitions_are_refused_by_name() -> None:
    """A name that the table does not have is an error that shows up to five of them."""
    names = [f"day={n}" for n in range(2, 9)]
    with pytest.raises(UnknownPartitionError, match=r"7 of the partitions named: 'day=2', .*'day=6' and 2 more"):
        plan_clustering(small_files("day=1"), SETTINGS, basis=basis(), partitions=names)


@pytest.mark.parametrize("partitions", [[], "day=1", "*"])
def test_an_empty_selection_is_not_all(partitions: list[str] | str) -> None:
    """No name, or a text instead of a list of names, is refused."""
    with pytest.raises(InvalidSettingError, match="names no partition"):
        plan_clustering(small_files("day=1"), SETTINGS, basis=basis(), partitions=partitions)


def test_a_table_without_partitions_has_one() -> None:
    """The partition of a table that is not partitioned is the empty path."""
    plan = plan_clustering(small_files(""), SETTINGS, basis=basis())
    assert [""] == [entry.partition_path for entry in plan.chosen]


def test_a_held_slice_blocks_its_partition() -> None:
    """The instant that a slice names blocks its whole partition."""
    slices = {"day=1": [*small_files("day=1")["day=1"], file_slice("z", 10, held_by="20261129000000000")]}
    entry = plan_clustering(slices, SETTINGS, basis=basis()).entries[0]
    assert (Decision.BLOCKED, "20261129000000000", ()) == (entry.decision, entry.blocked_by, entry.file_ids)


def test_a_partition_that_cannot_be_named_is_blocked() -> None:
    """A comma would end its name in the list that Hudi is given; a star is no wildcard there. The rest is chosen."""
    plan = plan_clustering(small_files("day=a,b", "day=*", "day=c"), SETTINGS, basis=basis())
    assert ["day=*", "day=c"] == [entry.partition_path for entry in plan.chosen]
    expected = (
        "2 small files of 20 B become 1 in 1 group; "
        "blocked: its name holds ',', which Hudi takes for the end of a name, so that it cannot be selected"
    )
    assert [(Decision.BLOCKED, expected, None)] == [
        (entry.decision, entry.reason, entry.blocked_by) for entry in plan.entries if entry not in plan.chosen
    ]


def test_a_slice_without_base_file_counts_as_hudi_counts_it() -> None:
    """A slice with log files only is small, and is packed as if it were of the largest size that Hudi writes."""
    settings = ClusteringSettings(
        target_file_bytes=ASSUMED_BASE_FILE_BYTES,
        small_file_bytes=MEBIBYTE,
        max_group_bytes=2 * ASSUMED_BASE_FILE_BYTES,
    )
    slices = [file_slice("a", None, log_bytes=5), file_slice("b", None, log_bytes=5), file_slice("c", MEBIBYTE - 1)]
    expected = [(["a", "b"], 2)]
    assert expected == [
        ([s.file_id for s in group.slices], group.output_file_count) for group in pack_groups(slices, settings)
    ]


def test_options_turn_off_what_would_change_the_plan() -> None:
    """Sizes are passed as they are, and planning looks at the partitions that are named, written lately or not."""
    assert clustering_options(SETTINGS, group_count=2) == {
        "hoodie.clustering.plan.strategy.small.file.limit": "60",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": "100",
        "hoodie.clustering.plan.strategy.max.bytes.per.group": "100",
        "hoodie.clustering.plan.strategy.max.num.groups": "2",
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
        "hoodie.table.services.incremental.enabled": "false",
    }


def test_options_for_sorting_leave_single_files_to_hudi() -> None:
    """With sort columns Hudi plans single files whatever the option says."""
    settings = ClusteringSettings(sort_columns=("id",))
    assert "hoodie.clustering.plan.strategy.single.group.clustering.enabled" not in clustering_options(
        settings, group_count=1
    )


def test_options_need_a_group() -> None:
    """Hudi is not called for a plan without groups."""
    with pytest.raises(InvalidSettingError, match="group_count=0"):
        clustering_options(SETTINGS, group_count=0)


def test_small_file_compaction_says_what_it_is_for() -> None:
    """Its plan has a purpose of its own."""
    assert plan_small_file_compaction(small_files("day=1"), SETTINGS, basis=basis()).purpose == "small-files"


def test_small_file_compaction_does_not_sort() -> None:
    """Sort columns are refused."""
    with pytest.raises(InvalidSettingError, match=r"sort_columns=\['id'\]"):
        plan_small_file_compaction({}, ClusteringSettings(sort_columns=("id",)), basis=basis())


@pytest.mark.parametrize("setting", ["min_files_removed", "max_bytes_per_file_removed"])
def test_bounds_that_make_no_sense_are_refused(setting: str) -> None:
    """A bound below one is refused by name."""
    with pytest.raises(InvalidSettingError, match=f"{setting}=0"):
        Worthwhile(**{setting: 0})
