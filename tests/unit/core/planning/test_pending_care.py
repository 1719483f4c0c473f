"""What becomes of a pending plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.model.pending_care import Owner, PendingFact, Resolution, ResolveAction
from airflow_hudi_maint.core.planning.pending_care import PlanCondition, ResolveSettings, resolve

HOUR = 3600.0
DAY_OLD = PendingFact(
    plan=PendingPlan(
        instant=Instant(
            requested_time="20261130100000000",
            action=Action.CLUSTERING,
            state=State.REQUESTED,
            completion_time=None,
            file_name="20261130100000000.clustering.requested",
        ),
        kind=PlanKind.CLUSTERING,
        groups=(),
        output_file_count=1,
    ),
    owner=Owner.OURS,
    age_seconds=24 * HOUR,
    idle_seconds=24 * HOUR,
)
AS_IT_WAS = PlanCondition()
OVERTAKEN = PlanCondition(overtaken="file group f1 of partition 'day=1' was replaced or removed")
WRITTEN_UPON = PlanCondition(stranded_log=".f1_20261130100000000.log.1_0-1-2")


def _settings(action: ResolveAction = ResolveAction.AUTO, **others: object) -> ResolveSettings:
    return replace(ResolveSettings(action=action), **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "condition", "expected"),
    [
        (ResolveAction.FINISH, AS_IT_WAS, Resolution.FINISH),
        (ResolveAction.FINISH, OVERTAKEN, Resolution.LEAVE),
        (ResolveAction.FINISH, WRITTEN_UPON, Resolution.FINISH),
        (ResolveAction.ROLL_BACK, AS_IT_WAS, Resolution.ROLL_BACK),
        (ResolveAction.ROLL_BACK, OVERTAKEN, Resolution.ROLL_BACK),
        (ResolveAction.ROLL_BACK, WRITTEN_UPON, Resolution.LEAVE),
        (ResolveAction.AUTO, AS_IT_WAS, Resolution.FINISH),
        (ResolveAction.AUTO, OVERTAKEN, Resolution.ROLL_BACK),
        (ResolveAction.AUTO, WRITTEN_UPON, Resolution.FINISH),
        (ResolveAction.AUTO, replace(WRITTEN_UPON, overtaken=OVERTAKEN.overtaken), Resolution.LEAVE),
    ],
)
def test_an_overtaken_plan_is_never_finished_and_one_that_was_written_upon_never_rolled_back(
    action: ResolveAction, condition: PlanCondition, expected: Resolution
) -> None:
    """What is asked for decides among what is safe; a plan that is both is left to a person."""
    assert resolve(DAY_OLD, condition, _settings(action)).resolution is expected


@pytest.mark.parametrize(
    ("fact", "condition", "settings", "reason"),
    [
        (replace(DAY_OLD, owner=Owner.OTHER), AS_IT_WAS, _settings(), "not made by us"),
        (replace(DAY_OLD, idle_seconds=HOUR - 1), AS_IT_WAS, _settings(), "older_than=1:00:00"),
        (replace(DAY_OLD, idle_seconds=None), AS_IT_WAS, _settings(), "no date"),
        (replace(DAY_OLD, beat_seconds=60.0), AS_IT_WAS, _settings(older_than=timedelta(0)), "its writer lives"),
        (DAY_OLD, PlanCondition(running_job="42"), _settings(), "job 42 is executing it"),
        (DAY_OLD, AS_IT_WAS, _settings(kinds=frozenset({PlanKind.COMPACTION})), "a clustering is not asked for"),
        (
            replace(DAY_OLD, plan=replace(DAY_OLD.plan, kind=PlanKind.LOG_COMPACTION)),
            AS_IT_WAS,
            _settings(kinds=frozenset(PlanKind)),
            "the table's writers'",
        ),
    ],
)
def test_a_plan_that_somebody_may_be_at_work_on_is_left(
    fact: PendingFact, condition: PlanCondition, settings: ResolveSettings, reason: str
) -> None:
    """Whatever is asked for: age, owner, heartbeat and our own job come first."""
    verdict = resolve(fact, condition, settings)
    assert (verdict.resolution, reason in verdict.reason) == (Resolution.LEAVE, True)


def test_a_plan_of_others_is_resolved_when_that_is_asked_for() -> None:
    """A heartbeat that is long silent stops nothing."""
    fact = replace(DAY_OLD, owner=Owner.OTHER, beat_seconds=2 * HOUR)
    assert resolve(fact, AS_IT_WAS, _settings(any_owner=True)).resolution is Resolution.FINISH


def test_a_negative_age_is_refused() -> None:
    """It would take plans that are not made yet."""
    with pytest.raises(InvalidSettingError, match="older_than"):
        _settings(older_than=timedelta(seconds=-1))
