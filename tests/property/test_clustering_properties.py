from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.file_slice import FileSlice
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, Decision
from airflow_hudi_maint.core.planning.clustering import plan_clustering
from airflow_hudi_maint.core.planning.clustering_benefit import Benefit
from airflow_hudi_maint.core.planning.clustering_candidates import PartitionFacts
from airflow_hudi_maint.core.planning.clustering_groups import pack_groups, packing_bytes
from airflow_hudi_maint.core.planning.clustering_strategies import (
    Cold,
    DayRolling,
    Largest,
    RecentDays,
    SelectedPartitions,
    SizeBased,
)
from airflow_hudi_maint.core.planning.clustering_strategy import Selecting
from tests.property import strategies as tables

Slices = dict[str, list[FileSlice]]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MOMENTS = st.one_of(st.none(), st.integers(0, 400).map(lambda hours: NOW - timedelta(hours=hours)))
STRATEGIES = st.one_of(
    st.just(SizeBased()),
    st.builds(RecentDays, lookback=st.integers(1, 4), skip_from_latest=st.integers(0, 3)),
    st.builds(SelectedPartitions, begin=st.sampled_from(["day=1", "day=3"]), regex=st.just("day=[0-4]")),
    st.just(DayRolling()),
    st.builds(Largest, count=st.integers(1, 4)),
    st.builds(Cold, idle_days=st.integers(1, 10)),
    st.builds(Benefit, budget_bytes=st.one_of(st.none(), st.integers(1, 600)), aging_days=st.integers(1, 9)),
)


@st.composite
def selections(draw: st.DrawFn, slices: Slices, settings: ClusteringSettings) -> Selecting:
    """Any strategy of ours, with facts of each partition."""
    facts = {
        path: replace(
            PartitionFacts.of(path, members, settings=settings),
            last_change=draw(MOMENTS),
            last_clustered=draw(MOMENTS),
            last_sorted=draw(MOMENTS),
            oldest_small_file=draw(MOMENTS),
        )
        for path, members in slices.items()
    }
    now = NOW.replace(hour=draw(st.integers(0, 7)))
    return Selecting(strategy=draw(STRATEGIES), now=now, facts=facts)


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
            assert settings.sort_columns or not group.is_lone


@given(slices=tables.file_slices(), settings=tables.clustering_settings())
def test_no_slice_is_in_two_groups(slices: Slices, settings: ClusteringSettings) -> None:
    """Each small slice is in one group; without a sort those are left out that would be rewritten alone."""
    for members in slices.values():
        packed = [one.file_id for group in pack_groups(members, settings) for one in group.slices]
        small = {one.file_id for one in members if packing_bytes(one) < settings.small_file_bytes}
        assert len(packed) == len(set(packed))
        assert set(packed) <= small
        assert not settings.sort_columns or set(packed) == small


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


@given(slices=tables.file_slices(), settings=tables.clustering_settings(), data=st.data())
def test_no_strategy_goes_by_the_order_of_a_listing(
    slices: Slices, settings: ClusteringSettings, data: st.DataObject
) -> None:
    """The same partitions in another order give the same plan, by every strategy."""
    selecting = data.draw(selections(slices, settings))
    shuffled = {path: slices[path] for path in data.draw(st.permutations(list(slices)))}
    again = replace(selecting, facts={path: selecting.facts[path] for path in shuffled})
    expected = plan_clustering(slices, settings, basis=tables.basis(), selecting=selecting)
    assert expected == plan_clustering(shuffled, settings, basis=tables.basis(), selecting=again)


@given(slices=tables.file_slices(), settings=tables.clustering_settings(), data=st.data())
def test_every_strategy_keeps_the_budget_and_explains_the_rest(
    slices: Slices, settings: ClusteringSettings, data: st.DataObject
) -> None:
    """Groups and bytes stay within their limits; each partition has an entry, and each that is left a reason."""
    selecting = data.draw(selections(slices, settings))
    plan = plan_clustering(slices, settings, basis=tables.basis(), selecting=selecting)
    assert settings.max_groups is None or plan.group_count <= settings.max_groups
    max_bytes = selecting.strategy.max_bytes
    assert max_bytes is None or sum(entry.input_bytes for entry in plan.chosen) <= max_bytes
    assert sorted(slices) == [entry.partition_path for entry in plan.entries]
    assert all(entry.reason for entry in plan.entries)


@given(
    slices=tables.file_slices(held=False),
    settings=tables.clustering_settings(),
    aging_days=st.integers(1, 5),
    newcomers=st.integers(2, 12),
)
def test_under_the_benefit_strategy_nothing_starves(
    slices: Slices, settings: ClusteringSettings, aging_days: int, newcomers: int
) -> None:
    """A partition has its turn although another gets files anew each day that are worth far more.

    Each partition costs less than the budget, which is as small as that allows.
    """
    settings = replace(settings, max_groups=None)
    everything = plan_clustering(slices, settings, basis=tables.basis())
    busy = [tables.file_slice("busy", f"n{number}", base_bytes=1) for number in range(newcomers)]
    if not everything.chosen or settings.small_file_bytes < 2 or newcomers < settings.min_input_files:
        return
    budget = max(newcomers, *(entry.input_bytes for entry in everything.chosen))
    waiting = {entry.partition_path for entry in everything.chosen}
    strategy = Benefit(budget_bytes=budget, aging_days=aging_days)
    began = dict.fromkeys([*slices, "busy"], NOW)
    for day in range(1, 20_000):
        now = NOW + timedelta(days=day)
        table = {**{path: slices[path] for path in waiting}, "busy": busy}
        facts = {
            path: replace(PartitionFacts.of(path, members, settings=settings), last_clustered=began[path])
            for path, members in table.items()
        }
        selecting = Selecting(strategy=strategy, now=now, facts=facts)
        plan = plan_clustering(table, settings, basis=tables.basis(), selecting=selecting)
        for entry in plan.chosen:
            waiting.discard(entry.partition_path)
            began[entry.partition_path] = now
        if not waiting:
            return
    raise AssertionError(f"never chosen: {waiting}")
