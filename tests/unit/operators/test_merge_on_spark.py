"""The operator that merges by a Spark job: how a retry finds the job, how it is killed, and what plan it gets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.errors import EngineError, EngineKilledError
from airflow_hudi_maint.core.maintenance import open_merge_workspace
from airflow_hudi_maint.core.model.job import JobHandle, JobReport
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
from airflow_hudi_maint.operators.job_keeping import JOB_KEY
from airflow_hudi_maint.operators.merge import MergeSmallFilesOperator
from tests.airflow.fakes import FakeStore, context
from tests.airflow.marks import AIRFLOW
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.test_merging_on_spark import TaskEngine
from tests.unit.operators.test_merge import DAYS, landing, rows, visible  # noqa: F401 a fixture

pytestmark = AIRFLOW


class Merging(MergeSmallFilesOperator):
    """The operator with an engine of the test."""

    def __init__(self, *, fake: FakeEngine, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.fake = fake

    def make_engine(self, workspace: Any) -> Any:
        self._refuse_when_stopped()
        return self._reachable(self.fake)


def merging(landing: Path, fake: FakeEngine, **arguments: Any) -> Merging:  # noqa: F811
    return Merging(task_id="merge", directory=str(landing), engine="spark", fake=fake, **arguments)


def test_one_job_merges_all_directories_and_is_named_after_the_task(landing: Path) -> None:  # noqa: F811
    before, engine, store = rows(landing), TaskEngine(), FakeStore()
    result = merging(landing, engine).execute(context(store=store))
    assert ("done", 12, 3) == (result["outcome"], result["files_before"], result["files_after"])
    assert before == rows(landing)
    (request,) = engine.requests
    assert request.application_name.startswith("hudi-maint-maintain-step-manual__1-")
    assert {} == store


def test_a_plan_for_spark_is_one_chunk_and_one_job(landing: Path) -> None:  # noqa: F811
    """So that a DAG maps over the chunks of either engine alike."""
    engine = TaskEngine()
    plan = merging(landing, engine, plan_only=True, directories_per_chunk=1).execute(context())
    assert [{"number": 0, "of": 1}] == plan["chunks"]
    result = merging(landing, engine, plan_path=plan, chunk=plan["chunks"][0]).execute(context())
    assert (3, 1) == (result["groups"], len(engine.requests))
    assert [1, 1, 1] == [len(visible(landing, day)) for day in DAYS]


def test_a_part_of_a_plan_is_refused(landing: Path) -> None:  # noqa: F811
    with pytest.raises(AirflowFailException, match="whole plan in one job"):
        merging(landing, TaskEngine(), plan_path="x", chunk={"number": 0, "of": 2}).execute(context())


def test_an_unknown_engine_is_refused_before_anything_is_read(landing: Path) -> None:  # noqa: F811
    task = MergeSmallFilesOperator(task_id="merge", directory=str(landing), engine="flink")
    with pytest.raises(AirflowFailException, match="expected 'embedded' or 'spark'"):
        task.execute(context())
    assert not (landing / ".airflow_hudi_maint").exists()


def test_a_retry_ends_the_job_that_failed_to_report_and_merges_by_its_own(landing: Path) -> None:  # noqa: F811
    store = FakeStore()
    lost = FakeEngine(answer=JobReport(ok=False, error_class="E", error_message="E: driver lost"))
    with pytest.raises(EngineError, match="driver lost"):
        merging(landing, lost).execute(context(store=store))
    assert JobHandle(engine="fake", job_id="1").to_json().items() <= store[JOB_KEY].items()
    engine = TaskEngine(running=True)
    merging(landing, engine).execute(context(store=store))
    assert not engine.running
    assert [1, 1, 1] == [len(visible(landing, day)) for day in DAYS]
    assert {} == store


def test_a_task_that_was_asked_to_stop_starts_no_job(landing: Path) -> None:  # noqa: F811
    engine = TaskEngine()
    task = merging(landing, engine)
    task.on_kill()
    with pytest.raises(EngineKilledError, match="asked to stop"):
        task.execute(context())
    assert [] == engine.requests


def test_a_job_on_a_cluster_and_its_caller_meet_among_what_is_ours_in_the_directory(tmp_path: Path) -> None:
    """A folder .hoodie would make a table of the directory; the storage is opened as the directory is."""
    options = {"auto_mkdir": True}
    workspace = open_merge_workspace(str(tmp_path), storage_options=options)
    engine: Any = HudiHook(None).make_engine_for_files(workspace)
    assert options == engine.storage_options
    hook = HudiHook(None)
    hook.__dict__["settings"] = HudiConnectionSettings(engine="spark_submit", master="spark://none:7077")
    cluster: Any = hook.make_engine_for_files(workspace)
    assert f"{tmp_path}/.airflow_hudi_maint/jobs/x/y.json" == cluster.exchange().url("x/y.json")
