from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, Decision
from airflow_hudi_maint.core.planning.clustering import plan_clustering
from airflow_hudi_maint.core.planning.clustering_groups import pack_groups, packing_bytes
from tests.property import strategies as tables

Slices = dict[str, list[FileSlice]]


def executed(slices: Slices, plan: ClusteringPlan, *, run: int) -> Slices:
    """The slices after Hudi executed a plan: each group's bytes, log files merged in, spread evenly over its files."""
    after: Slices = {path: list(members) for path, members in slices.items()}
    for entry in plan.chosen:
        path = entry.partition_path
        after[path] = [one for one in slices[path] if one.file_id not in entry.file_ids]
        for number, group in enumerate(pack_groups(slices[path], plan.settings)[: entry.group_count]):
            size = group.packed_bytes // max(group.output_file_count, 1)
            after[path] += [
                tables.file_slice(path, f"r{run}g{number}o{output}", base_bytes=size)
                for output in range(group.output_file_count)
            ]
    return after


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_groups_are_within_bounds(slices: Slices, settings: ClusteringSettings) -> None:
    """A group holds small slices only, of no more than its bytes, and makes as many files as the target asks for."""
    for members in slices.values():
        for group in pack_groups(members, settings):
            assert all(one.base_bytes < settings.small_file_bytes for one in group.slices)
            assert group.packed_bytes <= settings.max_group_bytes
            assert group.output_file_count * settings.target_file_bytes >= group.packed_bytes
            assert (group.output_file_count - 1) * settings.target_file_bytes < group.packed_bytes


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_no_slice_is_in_two_groups(slices: Slices, settings: ClusteringSettings) -> None:
    """Each small slice is in one group, but for a last one that would be rewritten alone."""
    for members in slices.values():
        packed = [one.file_id for group in pack_groups(members, settings) for one in group.slices]
        small = {one.file_id for one in members if packing_bytes(one) < settings.small_file_bytes}
        assert len(packed) == len(set(packed))
        assert set(packed) <= small
        assert len(small - set(packed)) <= (0 if settings.sort_columns else 1)


@given(slices=tables.file_slices(), settings=tables.clustering_settings(), data=st.data())
def test_the_order_of_a_listing_is_irrelevant(
    slices: Slices, settings: ClusteringSettings, data: st.DataObject
) -> None:
    """The same slices in another order give the same plan."""
    paths = data.draw(st.permutations(list(slices)))
    shuffled = {path: data.draw(st.permutations(slices[path])) for path in paths}
    expected = plan_clustering(slices, settings, basis=tables.basis())
    assert expected == plan_clustering(shuffled, settings, basis=tables.basis())


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_a_plan_is_within_its_budget_and_gains_something(slices: Slices, settings: ClusteringSettings) -> None:
    """No more groups than allowed, each chosen partition loses files, and none that a plan holds is chosen."""
    plan = plan_clustering(slices, settings, basis=tables.basis())
    assert settings.max_groups is None or plan.group_count <= settings.max_groups
    for entry in plan.chosen:
        assert len(entry.file_ids) > entry.output_file_count
        assert not any(one.pending_instant for one in slices[entry.partition_path])
    assert sorted(slices) == [entry.partition_path for entry in plan.entries]


@given(slices=tables.file_slices(held=False), settings=tables.clustering_settings())
def test_running_again_comes_to_an_end(slices: Slices, settings: ClusteringSettings) -> None:
    """Plans that are executed leave fewer files each time, until one finds nothing to do; none is left out for good."""
    files = sum(map(len, slices.values()))
    for run in range(files + 1):
        plan = plan_clustering(slices, settings, basis=tables.basis())
        if not plan.chosen:
            assert not any("left for the next run" in entry.reason for entry in plan.entries)
            return
        slices = executed(slices, plan, run=run)
        left = sum(map(len, slices.values()))
        assert left < files
        files = left
    raise AssertionError("there was always something to do")


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_a_plan_survives_json(slices: Slices, settings: ClusteringSettings) -> None:
    """A plan that is written and read again is the same plan."""
    plan = plan_clustering(slices, settings, basis=tables.basis())
    assert plan == ClusteringPlan.from_json(json.loads(json.dumps(plan.to_json())), name="plan.json")


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_each_entry_says_why(slices: Slices, settings: ClusteringSettings) -> None:
    """Each partition has a decision of clustering and a reason."""
    for entry in plan_clustering(slices, settings, basis=tables.basis()).entries:
        assert entry.decision in (Decision.CLUSTER, Decision.KEEP, Decision.BLOCKED)
        assert entry.reason
