from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.plan import Decision, ExpiryPlan
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards, plan_expiry
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, Horizon, forecast_expiry
from airflow_hudi_maint.core.planning.policy_match import describe
from tests.property import strategies as tables

Case: TypeAlias = "tuple[TableStatistics, PolicySet, PartitionScheme, dict[str, str]]"
WALL = ExpiryGuards(clock=ExpiryClock.WALL)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A table with policies that fit it, and the pending plan on some of its partitions."""
    scheme = draw(tables.schemes())
    rows = draw(tables.partitions(scheme))
    held = draw(st.sets(st.sampled_from([row.partition_path for row in rows]))) if rows else set()
    return tables.table(rows), draw(tables.policy_sets(scheme)), scheme, dict.fromkeys(held, "20261129000000000")


def planned(
    case: Case,
    *,
    now: datetime = tables.NOW,
    guards: ExpiryGuards = WALL,
) -> ExpiryPlan:
    statistics, policies, scheme, pending = case
    return plan_expiry(
        statistics,
        policies,
        scheme=scheme,
        field_types={},
        pending=pending,
        basis=tables.basis(),
        zone=UTC,
        now=now,
        guards=guards,
    )


def foreseen(case: Case, *, guards: ExpiryGuards = WALL) -> ExpiryForecast:
    statistics, policies, scheme, pending = case
    return forecast_expiry(
        statistics, policies, scheme=scheme, field_types={}, pending=pending, zone=UTC, now=tables.NOW, guards=guards
    )


@given(case=cases(), clock=st.sampled_from(ExpiryClock))
def test_the_forecast_says_of_now_what_the_plan_says(case: Case, clock: ExpiryClock) -> None:
    guards = ExpiryGuards(clock=clock)
    plan = planned(case, guards=guards)
    told = {Horizon.NOW: Decision.EXPIRE, Horizon.BLOCKED: Decision.BLOCKED}
    found = [
        (one.partition_path, told.get(one.horizon, Decision.KEEP)) for one in foreseen(case, guards=guards).entries
    ]
    assert found == [(one.partition_path, one.decision) for one in plan.entries]


@given(case=cases(), later=st.timedeltas(timedelta(0), timedelta(days=400)))
def test_what_is_due_by_a_day_is_what_a_plan_of_that_day_lets_go(case: Case, later: timedelta) -> None:
    """Of what goes by time, on any day to come, if nothing is written until then."""
    moment = tables.NOW + later
    plan = planned(case, now=moment)
    by_time = {describe(policy) for policy in case[1].all() if policy.kind is PolicyKind.KEEP_BY_TIME}
    due = {one.partition_path for one in foreseen(case).entries if one.due is not None and one.due < moment}
    assert due == {
        one.partition_path for one in plan.entries if one.policy in by_time and one.decision is not Decision.KEEP
    }
