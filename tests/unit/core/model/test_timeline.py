from __future__ import annotations

import pytest

from airflow_hudi_maint.core.model.instant import EARLIEST_INSTANT, Action, Instant, State
from airflow_hudi_maint.core.model.timeline import Timeline

FIRST, SECOND, THIRD = "20261101000000000", "20261102000000000", "20261103000000000"


def instant(requested_time: str, action: Action = Action.COMMIT, state: State = State.COMPLETED) -> Instant:
    return Instant(
        requested_time=requested_time,
        action=action,
        state=state,
        completion_time=None,
        file_name=f"{requested_time}.{action}.{state}",
    )


@pytest.mark.parametrize(
    ("instants", "expected"),
    [
        ([], EARLIEST_INSTANT),
        ([instant(SECOND), instant(THIRD)], SECOND),
        ([instant(FIRST, state=State.INFLIGHT), instant(SECOND)], SECOND),
        ([instant(FIRST, Action.COMPACTION, State.REQUESTED), instant(SECOND)], FIRST),
        ([instant(FIRST, Action.CLEAN), instant(SECOND)], SECOND),
        ([instant(FIRST), instant(FIRST, Action.SAVEPOINT), instant(THIRD)], THIRD),
        ([instant(FIRST), instant(FIRST, Action.SAVEPOINT, State.INFLIGHT), instant(THIRD)], FIRST),
        ([instant(FIRST), instant(SECOND), instant(SECOND, Action.SAVEPOINT)], FIRST),
        ([instant(FIRST), instant(FIRST, Action.SAVEPOINT)], FIRST),
    ],
)
def test_a_timeline_starts_at_its_first_write_that_no_savepoint_kept(instants: list[Instant], expected: str) -> None:
    """Archival may pass over savepointed instants, so what is older than the next one may be archived all the same."""
    assert expected == Timeline.of(instants).start
