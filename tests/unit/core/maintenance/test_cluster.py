"""Clustering at once: one application, one plan, and a retry that goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import EngineError, PendingActionError, VerificationError
from airflow_hudi_maint.core.maintenance import JobControl
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport
from airflow_hudi_maint.core.model.plan import ClusteringSettings, Layout
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.scheduler import Scheduler
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, three_days_of_rows
from tests.unit.core.maintenance.six_days import NOW, workspace_with
from tests.unit.core.storage.builders import TableBuilder, at

SETTINGS = ClusteringSettings(target_file_bytes=1024**2, small_file_bytes=64 * 1024, max_group_bytes=2 * 1024**2)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days_of_rows(str(tmp_path / "trips"))


@dataclass
class Task:
    """A task over its tries: it remembers the plan and the job, as the operator does."""

    table: TableBuilder
    plan_path: str | None = None
    handle: JobHandle | None = None
    settings: ClusteringSettings = SETTINGS
    planned: list[str] = field(default_factory=list)

    def run(self, engine: FakeEngine, scheduler: Scheduler = Scheduler.HUDI, **arguments: object) -> StepReport:
        job = JobControl(
            previous=self.handle,
            plan_path=self.plan_path if self.handle else None,
            on_submitted=lambda handle: setattr(self, "handle", handle),
            on_planned=lambda path: setattr(self, "plan_path", path),
        )
        return maintenance.cluster(
            workspace_with(self.table, engine),
            now=NOW,
            settings=self.settings,
            job=job,
            scheduler=scheduler,
            **arguments,  # type: ignore[arg-type]
        ).report


@pytest.mark.parametrize(
    ("scheduler", "kind"),
    [
        (Scheduler.HUDI, JobKind.CLUSTER),
        (Scheduler.NATIVE, JobKind.EXECUTE_CLUSTERING),
        (Scheduler.AUTO, JobKind.EXECUTE_CLUSTERING),
    ],
)
def test_one_application_does_both_and_a_second_run_starts_none(
    table: TableBuilder, scheduler: Scheduler, kind: JobKind
) -> None:
    """Whoever writes the plan, Spark is started once; afterwards there is nothing to do."""
    engine = FakeEngine(act=FakeHudi(table))

    report = Task(table).run(engine, scheduler)
    again = Task(table).run(engine, scheduler)

    assert [kind] == [one.kind for one in engine.requests]
    assert (Step.CLUSTER, Outcome.DONE, DAYS) == (report.step, report.outcome, list(report.partitions))
    assert (6, 3, 1) == (report.files_before, report.files_after, len(report.instants))
    assert not report.verification[0].failed
    assert Outcome.NOTHING_TO_DO is again.outcome


def test_the_job_is_asked_for_the_partitions_and_given_what_no_plan_keeps(table: TableBuilder) -> None:
    """As the two jobs apart are: the partitions by name, and the layout for the execution."""
    engine = FakeEngine(act=FakeHudi(table))
    settings = ClusteringSettings(
        target_file_bytes=1024**2,
        small_file_bytes=64 * 1024,
        max_group_bytes=2 * 1024**2,
        sort_columns=("fare",),
        layout=Layout.LINEAR,
    )

    Task(table, settings=settings).run(engine, partitions=DAYS[:2])

    arguments = engine.requests[0].arguments
    assert (DAYS[:2], ["fare"]) == (arguments["partitions"], arguments["sort_columns"])
    options = arguments["execute_options"]
    assert "LINEAR" == options["hoodie.layout.optimize.strategy"]  # type: ignore[call-overload,index]
    assert "fare" == options["hoodie.clustering.plan.strategy.sort.columns"]  # type: ignore[call-overload,index]


def _dies(hudi: FakeHudi) -> Callable[[object], None]:
    def act(request: object) -> None:
        hudi(request)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    return act


@pytest.mark.parametrize("executes", [False, True], ids=["in the rewrite", "before the report"])
def test_a_retry_finishes_what_its_forerunner_began(table: TableBuilder, executes: bool) -> None:  # noqa: FBT001
    """The worker died with the plan inflight, or completed: no second plan is made, and the plan is executed once."""
    task = Task(table)
    task.handle = JobHandle(engine="fake", job_id="1")
    first = FakeHudi(table, executes=executes)
    with pytest.raises(KeyboardInterrupt):
        task.run(FakeEngine(act=_dies(first)))
    second = FakeHudi(table, planned_at=at(50))

    report = task.run(engine := FakeEngine(act=second))

    assert ((at(40),), Step.CLUSTER) == (report.instants, report.step)
    assert [at(40)] == first.executed + second.executed
    assert [] == [one for one in engine.requests if one.kind is JobKind.CLUSTER]
    assert (Outcome.ALREADY_DONE if executes else Outcome.DONE) is report.outcome


def test_a_job_that_failed_after_it_scheduled_leaves_a_plan_of_ours(table: TableBuilder) -> None:
    """Also a task that is started anew, without a memory of the first, finishes it."""
    answer = JobReport(ok=False, error_class="E", error_message="no memory")
    with pytest.raises(EngineError, match="no memory"):
        Task(table).run(FakeEngine(act=FakeHudi(table, executes=False), answer=answer))

    hudi = FakeHudi(table)
    report = Task(table).run(FakeEngine(act=hudi))

    assert ((at(40),), [at(40)]) == (report.instants, hudi.executed)


def test_a_plan_that_holds_other_partitions_is_not_executed(table: TableBuilder) -> None:
    """The error names the instant."""
    engine = FakeEngine(act=FakeHudi(table, also=DAYS[2:]))

    with pytest.raises(PendingActionError, match=f"{at(40)} appeared meanwhile"):
        Task(table).run(engine, partitions=DAYS[:1])


def test_hudi_may_find_nothing(table: TableBuilder) -> None:
    """A job that says so, and whose timeline agrees, is believed."""
    report = Task(table).run(FakeEngine())
    assert (Outcome.NOTHING_TO_DO, "Hudi found nothing to cluster in the chosen partitions") == (
        report.outcome,
        report.message,
    )


def test_a_dry_run_starts_nothing_and_leaves_nothing(table: TableBuilder) -> None:
    """The plan is written for people, and the timeline is as it was."""
    engine = FakeEngine()
    report = Task(table).run(engine, dry_run=True)
    assert (Step.CLUSTER, Outcome.DRY_RUN, []) == (report.step, report.outcome, engine.requests)
    assert not table.open().timeline().pending


def test_a_wrong_result_fails_here_too(table: TableBuilder) -> None:
    """The same verification, with its report written first."""
    with pytest.raises(VerificationError, match="1 fewer"):
        Task(table).run(FakeEngine(act=FakeHudi(table, change=lambda rows: rows.slice(1))))
