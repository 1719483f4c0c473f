"""A drop beside a pipeline that writes at the same moment, under one lock provider.

Two processes are brought together by holding one of them still, its instant inflight, while the other does its work.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.maintenance import JobControl, StepReported, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.report import Outcome
from tests.spark.tables import DAYS, KEEP_FOUR, rows
from tests.spark.timeline_watch import TimelineWatch, matching, suspended, wait_for
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

LEFT = {f"day={day}": 30 for day in DAYS[2:]}
LOCKED = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    "hoodie.write.lock.client.num_retries": "300",
    # On a busy machine a process that is held still must not be taken for a dead one.
    "hoodie.client.heartbeat.interval_in_ms": "300000",
}


def _workspace(table: Path) -> Workspace:
    return maintenance.open_workspace(str(table), write_options=LOCKED)


def _lock(table: Path) -> Path:
    return table / ".hoodie" / "lock"


def _expire(table: Path, *, job: JobControl) -> StepReported:
    return maintenance.expire_partitions(_workspace(table), now=datetime.now(tz=UTC), job=job, policies=KEEP_FOUR)


def _expire_while(table: Path, write: Callable[[], None]) -> StepReported:
    """Expire two days; the pipeline writes when the drop is inflight and its file groups are chosen."""

    def do(group: int) -> None:
        with suspended(group, lock=_lock(table)):
            write()

    watch = TimelineWatch(table, sees="*.replacecommit.inflight", does=do)
    reported = _expire(table, job=JobControl(on_submitted=watch.follow))
    watch.check()
    return reported


def test_a_writer_in_another_partition_and_the_drop_both_succeed(table: Path, writer: HudiWriter) -> None:
    """Neither waits for the other's end, and each finds the table as both left it."""
    reported = _expire_while(
        table, lambda: writer.write(table, rows(7, day=DAYS[5]), operation="upsert", options=LOCKED)
    )

    assert (Outcome.DONE, ()) == (reported.report.outcome, reported.report.warnings)
    assert () == _workspace(table).table.timeline().pending
    assert {**LEFT, f"day={DAYS[5]}": 40} == writer.counts(table)


def test_an_upsert_that_ends_before_the_drop_of_its_partition_loses_and_is_named(
    table: Path, writer: HudiWriter
) -> None:
    """Hudi sees no conflict when the drop commits second, and takes the fresh rows with it: the report says whose.

    Rows that the same commit wrote to another partition are unharmed.
    """
    both = rows(0, day=DAYS[0], value=9.0) + rows(0, day=DAYS[5], value=9.0)
    reported = _expire_while(table, lambda: writer.write(table, both, operation="upsert", options=LOCKED))

    timeline = _workspace(table).table.timeline()
    (upsert,) = [one for one in timeline.completed if one.action is Action.COMMIT][-1:]
    assert Outcome.DONE is reported.report.outcome
    assert any(
        f"rows that {upsert.requested_time}" in warning and f"'day={DAYS[0]}'" in warning
        for warning in reported.report.warnings
    )
    assert () == timeline.pending
    assert LEFT == writer.counts(table)
    assert 10 == sum(1 for row in writer.rows(table) if row[2] == 9.0)


def test_an_upsert_that_ends_after_the_drop_of_its_partition_is_refused(table: Path, writer: HudiWriter) -> None:
    """Hudi refuses the commit of the second, whole; the drop stands, and the pipeline's next try is new data."""

    def write() -> None:
        writer.write(table, rows(0, day=DAYS[0], value=9.0), operation="upsert", options=LOCKED)

    earlier = matching(table, "*[0-9].inflight")
    with ThreadPoolExecutor(max_workers=1) as pool:
        writing = pool.submit(write)
        wait_for(table, sees="*[0-9].inflight", besides=earlier)
        with suspended(writer.process_group, lock=_lock(table)):
            reported = _expire(table, job=JobControl())
        with pytest.raises(RuntimeError, match="Cannot resolve conflicts for overlapping writes"):
            writing.result()

    assert (Outcome.DONE, ()) == (reported.report.outcome, reported.report.warnings)
    assert [Action.COMMIT] == [one.action for one in _workspace(table).table.timeline().pending]
    assert LEFT == writer.counts(table)
    write()
    assert {**LEFT, f"day={DAYS[0]}": 10} == writer.counts(table)
