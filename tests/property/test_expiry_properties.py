from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, timedelta

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.plan import Decision, ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicyClock, PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.statistics import PartitionStatistics
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards, plan_expiry
from airflow_hudi_maint.core.planning.policy_match import describe, match_policy
from tests.property import strategies as tables

NO_LIMITS = ExpiryGuards(max_partition_share=None, max_byte_share=None, max_record_share=None, min_partitions_left=None)


def plan_of(
    rows: Iterable[PartitionStatistics],
    policies: PolicySet,
    *,
    scheme: PartitionScheme,
    field_type: str | None = "string",
    pending: Iterable[str] = (),
    guards: ExpiryGuards = NO_LIMITS,
    created: Mapping[str, str] | None = None,
) -> ExpiryPlan:
    return plan_expiry(
        tables.table(list(rows)),
        policies,
        scheme=scheme,
        field_types=dict.fromkeys(scheme.fields, field_type) if field_type else {},
        pending=dict.fromkeys(pending, "20261129000000000"),
        basis=tables.basis(),
        zone=UTC,
        now=tables.NOW,
        guards=guards,
        created=created or {},
    )


def dropped(plan: ExpiryPlan) -> set[str]:
    return {entry.partition_path for entry in plan.expired}


def children(rows: Iterable[PartitionStatistics], *, depth: int) -> dict[str, dict[str, list[PartitionStatistics]]]:
    """Rows by the path of ``depth`` levels, then by the value of the next one."""
    groups: dict[str, dict[str, list[PartitionStatistics]]] = {}
    for row in rows:
        parts = row.partition_path.split("/")
        groups.setdefault("/".join(parts[:depth]), {}).setdefault(parts[depth], []).append(row)
    return groups


@st.composite
def numbered_tables(draw: st.DrawFn) -> tuple[PartitionScheme, int, list[PartitionStatistics]]:
    scheme = draw(tables.schemes())
    rows = draw(tables.partitions(scheme, values=tables.DIGITS))
    return scheme, draw(st.integers(0, len(scheme.fields) - 1)), rows


@st.composite
def any_tables(draw: st.DrawFn) -> tuple[PartitionScheme, PolicySet, list[PartitionStatistics]]:
    scheme = draw(tables.schemes())
    return scheme, draw(tables.policy_sets(scheme)), draw(tables.partitions(scheme))


def policy(kind: PolicyKind, value: int, *, scheme: PartitionScheme, depth: int) -> PolicySet:
    spec = PartitionSpec(levels=tuple((field, None) for field in scheme.fields[:depth]))
    return PolicySet(explicit=(TTLPolicy(spec=spec, kind=kind, value=value),))


@given(table=numbered_tables(), kept=st.integers(1, 6))
def test_keep_by_count_keeps_exactly_that_many(
    table: tuple[PartitionScheme, int, list[PartitionStatistics]], kept: int
) -> None:
    """Under each prefix exactly min(N, count) sub-partitions stay, whole, and they have the greatest values."""
    scheme, depth, rows = table
    by = policy(PolicyKind.KEEP_BY_COUNT, kept, scheme=scheme, depth=depth)
    gone = dropped(plan_of(rows, by, scheme=scheme, field_type="int"))
    left = children([row for row in rows if row.partition_path not in gone], depth=depth)
    for prefix, values in children(rows, depth=depth).items():
        newest = sorted(values, key=lambda value: int(value.split("=")[1]))[-kept:]
        assert {value: values[value] for value in newest} == left[prefix]


@given(table=numbered_tables(), budget=st.integers(1, 2000))
def test_keep_by_size_keeps_no_more_than_the_budget(
    table: tuple[PartitionScheme, int, list[PartitionStatistics]], budget: int
) -> None:
    """Under each prefix the greatest values stay that fit into the budget, and the newest one in any case."""
    scheme, depth, rows = table
    by = policy(PolicyKind.KEEP_BY_SIZE, budget, scheme=scheme, depth=depth)
    gone = dropped(plan_of(rows, by, scheme=scheme, field_type="int"))
    left = children([row for row in rows if row.partition_path not in gone], depth=depth)
    for prefix, values in children(rows, depth=depth).items():
        ordered = sorted(values, key=lambda value: int(value.split("=")[1]))
        sizes = [sum(row.total_bytes for row in values[value]) for value in ordered]
        fitting = sum(sum(sizes[start:]) <= budget for start in range(len(sizes)))
        assert set(ordered[-max(fitting, 1) :]) == set(left[prefix])


@given(table=any_tables(), data=st.data(), field_type=st.sampled_from(["string", "int", None]))
def test_the_order_of_a_listing_is_irrelevant(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]], data: st.DataObject, field_type: str | None
) -> None:
    """The same partitions in another order give the same plan."""
    scheme, policies, rows = table
    shuffled = data.draw(st.permutations(rows))
    expected = plan_of(rows, policies, scheme=scheme, field_type=field_type)
    assert expected == plan_of(shuffled, policies, scheme=scheme, field_type=field_type)


@given(table=any_tables(), field_type=st.sampled_from(["string", "int", None]))
def test_survivors_survive_a_second_run(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]], field_type: str | None
) -> None:
    """What stays after an expiry is not expired by the next one."""
    scheme, policies, rows = table
    gone = dropped(plan_of(rows, policies, scheme=scheme, field_type=field_type))
    survivors = [row for row in rows if row.partition_path not in gone]
    assert set() == dropped(plan_of(survivors, policies, scheme=scheme, field_type=field_type))


@given(table=any_tables())
def test_a_partition_expires_by_the_policy_that_wins_only(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]],
) -> None:
    """No partition outside a policy's spec expires by it: a policy never reaches siblings."""
    scheme, policies, rows = table
    for entry in plan_of(rows, policies, scheme=scheme).expired:
        values = scheme.values(entry.partition_path)
        assert values is not None
        winner = match_policy(values, policies).winner
        assert winner is not None
        assert winner.spec.matches(values)
        assert (entry.policy or "").startswith(str(winner))


@given(table=any_tables())
def test_siblings_of_a_spec_are_judged_as_if_the_policy_were_not_there(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]],
) -> None:
    """Without a default, taking away one explicit policy changes nothing outside its spec but what shares a group."""
    scheme, policies, rows = table
    if not policies.explicit:
        return
    *others, last = policies.explicit
    alone = PolicySet(explicit=(last,))
    outside = [row for row in rows if not last.spec.matches(scheme.values(row.partition_path) or ())]
    assert not dropped(plan_of(rows, alone, scheme=scheme)) & {row.partition_path for row in outside}
    assert dropped(plan_of(outside, PolicySet(explicit=tuple(others)), scheme=scheme)) == dropped(
        plan_of(outside, PolicySet(explicit=policies.explicit), scheme=scheme)
    )


@given(table=any_tables(), data=st.data(), field_type=st.sampled_from(["string", "int", None]))
def test_a_tighter_policy_never_keeps_more(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]], data: st.DataObject, field_type: str | None
) -> None:
    """What expires by a set of policies expires by the same set with a smaller value in one of them."""
    scheme, policies, rows = table
    every = [one for one in policies.all() if one.value > 1]
    if not every:
        return
    chosen = data.draw(st.sampled_from(every))
    tighter = replace(chosen, value=data.draw(st.integers(1, chosen.value - 1)))
    tight = PolicySet(
        explicit=tuple(tighter if one is chosen else one for one in policies.explicit),
        default=tighter if policies.default is chosen else policies.default,
    )
    loose_drops = dropped(plan_of(rows, policies, scheme=scheme, field_type=field_type))
    assert loose_drops <= dropped(plan_of(rows, tight, scheme=scheme, field_type=field_type))


@given(table=any_tables())
def test_nothing_under_a_spec_is_emptied_unless_its_policy_says_so(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]],
) -> None:
    """Under each prefix of a spec, one of the partitions that its policy decides about stays."""
    scheme, policies, rows = table
    groups: dict[tuple[str | None, tuple[str, ...]], list[ExpiryEntry]] = {}
    depths = {describe(one): len(one.spec.levels) for one in policies.all() if not one.may_empty}
    for entry in plan_of(rows, policies, scheme=scheme).entries:
        depth = depths.get(entry.policy or "", len(scheme.fields))
        if depth < len(scheme.fields):
            prefix = tuple(entry.partition_path.split("/")[:depth])
            groups.setdefault((entry.policy, prefix), []).append(entry)
    for entries in groups.values():
        assert Decision.KEEP in {entry.decision for entry in entries}


@given(table=any_tables(), data=st.data())
def test_what_is_held_stays_and_changes_nothing_else(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]], data: st.DataObject
) -> None:
    """A legal hold takes its partitions out of what expires, and no other partition in or out."""
    scheme, policies, rows = table
    paths = [row.partition_path for row in rows]
    held = data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else []
    free = dropped(plan_of(rows, policies, scheme=scheme))
    plan = plan_of(rows, policies, scheme=scheme, guards=NO_LIMITS.holding_back(legal_hold=held))
    assert free - set(held) == dropped(plan)
    assert {entry.partition_path for entry in plan.spared} >= free & set(held)


@given(table=numbered_tables(), data=st.data(), days=st.integers(1, 400))
def test_by_creation_only_what_is_known_to_be_old_expires(
    table: tuple[PartitionScheme, int, list[PartitionStatistics]], data: st.DataObject, days: int
) -> None:
    """A partition whose creation is not known stays; the others go by it, whenever they were written."""
    scheme, depth, rows = table
    spec = PartitionSpec(levels=tuple((field, None) for field in scheme.fields[:depth]))
    by = TTLPolicy(spec=spec, kind=PolicyKind.KEEP_BY_TIME, value=days, clock=PolicyClock.CREATED, may_empty=True)
    created = {row.partition_path: data.draw(tables.instants) for row in rows if data.draw(st.booleans())}
    wall = replace(NO_LIMITS, clock=ExpiryClock.WALL, max_quiet_days=None)
    plan = plan_of(rows, PolicySet(explicit=(by,)), scheme=scheme, guards=wall, created=created)
    old = {path for path, one in created.items() if tables.NOW - instant_moment(one, zone=UTC) > timedelta(days=days)}
    assert old == dropped(plan)


@given(table=any_tables())
def test_a_plan_adds_up(table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]]) -> None:
    """The totals of a plan in columns are those of its entries, and it equals a plan that is made of entries."""
    scheme, policies, rows = table
    plan = plan_of(rows, policies, scheme=scheme)
    spelled = replace(plan, entries=tuple(plan.entries))
    assert spelled == plan
    assert (spelled.totals, spelled.summary()) == (plan.totals, plan.summary())
    assert [plan.entries[place] for place in range(len(plan.entries))] == list(plan.entries)
    assert (spelled.expired, spelled.spared) == (plan.expired, plan.spared)


@given(table=any_tables(), data=st.data())
def test_pending_plans_block_and_change_nothing_else(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]], data: st.DataObject
) -> None:
    """Blocked are exactly the partitions that would expire and are held; all others are judged as without the plans."""
    scheme, policies, rows = table
    paths = [row.partition_path for row in rows]
    held = data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else []
    free = plan_of(rows, policies, scheme=scheme)
    plan = plan_of(rows, policies, scheme=scheme, pending=held)
    assert dropped(free) & set(held) == {entry.partition_path for entry in plan.blocked}
    assert dropped(free) - set(held) == dropped(plan)


@given(table=any_tables(), held=st.booleans())
def test_a_plan_survives_json(
    table: tuple[PartitionScheme, PolicySet, list[PartitionStatistics]],
    held: bool,  # noqa: FBT001
) -> None:
    """A plan that is written and read again is the same plan."""
    scheme, policies, rows = table
    plan = plan_of(rows, policies, scheme=scheme, pending=[row.partition_path for row in rows] if held else [])
    assert plan == ExpiryPlan.from_json(plan.to_json(), name="plan.json")
    assert replace(plan, warnings=("w",)) == ExpiryPlan.from_json(replace(plan, warnings=("w",)).to_json(), name="p")
