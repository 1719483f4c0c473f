"""The JSON between this package and the job scripts: both sides are held to it, with a Spark that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.job import (
    JobHandle,
    JobKind,
    JobProgress,
    JobReport,
    JobRequest,
    JobStatus,
)
from tests.unit.job_scripts import JOBS, Ran, delete, request


def test_there_is_a_script_for_each_kind() -> None:
    """The engine finds a script by the name of its kind."""
    assert all((JOBS / f"{kind.value}.py").is_file() for kind in JobKind)


def test_deleting_names_every_partition_and_reads_no_row(tmp_path: Path) -> None:
    """The request that this package writes becomes the writer's options, and the report reads back."""
    ran = Ran(delete("day=1/hour=2", "day=3/hour=4"), tmp_path=tmp_path, script="delete_partitions")
    assert (ran.code, ran.report.ok, ran.report.error_message) == (0, True, None)
    assert ran.report.rows == ({"partition": "day=1/hour=2"}, {"partition": "day=3/hour=4"})
    assert ran.report.spark_version == "3.5.9"
    assert "select `id` `day`" in ran.calls
    assert "limit 0" in ran.calls
    assert ran.options() == {
        "hoodie.write.complex.keygen.validation.enable": "false",
        "hoodie.write.table.version": "6",
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.operation": "delete_partition",
        "hoodie.datasource.write.partitions.to.delete": "day=1/hour=2,day=3/hour=4",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day,hour",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "false",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    }


@pytest.mark.parametrize(
    ("partitions", "words"),
    [(["day=*"], "'day=*'"), ([], "No partition"), (["day=1", "day=a,b"], "'day=a,b'"), ([" "], "blank")],
)
def test_what_hudi_would_read_otherwise_is_refused(tmp_path: Path, partitions: list[str], words: str) -> None:
    """A wildcard, no name, a name with a comma and a blank name never reach Hudi; the report names the offender."""
    ran = Ran(delete(*partitions), tmp_path=tmp_path, script="delete_partitions")
    assert (ran.code, ran.report.ok, ran.report.error_class) == (1, False, "ValueError")
    assert words in str(ran.report.error_message)
    assert not [call for call in ran.calls if call.startswith("save")]


def test_scheduling_sets_options_for_one_call_and_takes_them_back(tmp_path: Path) -> None:
    """Options with commas and equal signs go by the session; the path is quoted with a backslash."""
    asked = request(
        JobKind.SCHEDULE_CLUSTERING,
        partitions=["day=1", "day=it's"],
        sort_columns=["city", "at"],
        layout="hilbert",
        options={"hoodie.clustering.plan.strategy.max.num.groups": "40"},
    )
    ran = Ran(asked, tmp_path=tmp_path, script="schedule_clustering")
    assert (ran.code, ran.report.ok) == (0, True)
    names = [
        "hoodie.table.services.incremental.enabled",
        "hoodie.write.table.version",
        "hoodie.clustering.plan.strategy.max.num.groups",
    ]
    assert ran.calls == [
        *(f"set {name} {value}" for name, value in zip(names, ["false", "6", "40"], strict=True)),
        (
            r"sql CALL run_clustering(path => '/lake/o\'trips', op => 'schedule', "
            r"selected_partitions => 'day=1,day=it\'s', order => 'city,at', order_strategy => 'hilbert')"
        ),
        *(f"unset {name}" for name in names),
        "stop",
    ]


def test_a_table_without_partitions_is_scheduled_whole(tmp_path: Path) -> None:
    """Without partitions and sort columns the call has neither argument."""
    asked = request(JobKind.SCHEDULE_CLUSTERING, partitions=[], sort_columns=[])
    ran = Ran(asked, tmp_path=tmp_path, script="schedule_clustering")
    assert r"sql CALL run_clustering(path => '/lake/o\'trips', op => 'schedule')" in ran.calls


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    """The report names the layout and those there are."""
    asked = request(JobKind.SCHEDULE_CLUSTERING, partitions=[], sort_columns=["a"], layout="spiral")
    ran = Ran(asked, tmp_path=tmp_path, script="schedule_clustering")
    assert ran.report.error_message == "ValueError: Layout 'spiral' is not one of linear, zorder, hilbert"


def test_each_instant_is_executed_with_its_own_options(tmp_path: Path) -> None:
    """What Hudi keeps in no plan goes with each of them; the rows of the procedure come back in the report."""
    first, second = "20261130120000000", "20261130130000000"
    asked = request(
        JobKind.EXECUTE_CLUSTERING,
        instants=[first, second],
        options={"hoodie.clustering.max.parallelism": "4"},
        options_of={first: {"hoodie.layout.optimize.strategy": "ZORDER"}},
    )
    ran = Ran(asked, tmp_path=tmp_path, script="execute_clustering")
    assert ran.report.rows == ({"timestamp": "20261130120000000", "state": "COMPLETED"},) * 2
    calls = [call for call in ran.calls if call.startswith(("sql", "set hoodie.layout", "set hoodie.clustering"))]
    assert calls == [
        "set hoodie.clustering.max.parallelism 4",
        "set hoodie.layout.optimize.strategy ZORDER",
        rf"sql CALL run_clustering(path => '/lake/o\'trips', op => 'execute', instants => '{first}')",
        "set hoodie.clustering.max.parallelism 4",
        rf"sql CALL run_clustering(path => '/lake/o\'trips', op => 'execute', instants => '{second}')",
    ]


@pytest.mark.parametrize("instants", [[], ["all"]])
def test_executing_everything_by_accident_is_refused(tmp_path: Path, instants: list[Json]) -> None:
    """Hudi takes no instants for all of them; here none is an error."""
    ran = Ran(request(JobKind.EXECUTE_CLUSTERING, instants=instants), tmp_path=tmp_path, script="execute_clustering")
    assert (ran.code, ran.report.ok) == (1, False)
    assert not [call for call in ran.calls if call.startswith("sql")]


def test_clustering_at_once_executes_what_came_of_its_own_plan(tmp_path: Path) -> None:
    """By comparing the pending plans: not what was there before, nor a plan that holds another partition."""
    old, ours, foreign = (f"2026113012000000{number}" for number in range(3))
    asked = request(
        JobKind.CLUSTER,
        partitions=["day=1", "day=2"],
        sort_columns=["city"],
        layout="zorder",
        execute_options={"hoodie.layout.optimize.strategy": "ZORDER"},
    )
    plans: list[Json] = [{old: ["day=9"]}, {old: ["day=9"], ours: ["day=1", "day=2"], foreign: ["day=2", "day=3"]}]
    ran = Ran(asked, tmp_path=tmp_path, script="cluster", hudi={"plans": plans})
    assert (ran.code, ran.report.error_message) == (0, None)
    calls = [call for call in ran.calls if call.startswith(("sql", "set hoodie.layout", "unset hoodie.layout"))]
    assert calls == [
        (
            r"sql CALL run_clustering(path => '/lake/o\'trips', op => 'schedule', "
            r"selected_partitions => 'day=1,day=2', order => 'city', order_strategy => 'zorder')"
        ),
        "set hoodie.layout.optimize.strategy ZORDER",
        rf"sql CALL run_clustering(path => '/lake/o\'trips', op => 'execute', instants => '{ours}')",
        "unset hoodie.layout.optimize.strategy",
    ]
    assert any(foreign in call and "left alone" in call for call in ran.calls)
    assert len(ran.report.rows) == 1


def test_clustering_at_once_may_find_nothing(tmp_path: Path) -> None:
    """Nothing was planned, so nothing is executed, and the report has no row."""
    ran = Ran(request(JobKind.CLUSTER, partitions=["day=1"], sort_columns=[]), tmp_path=tmp_path, script="cluster")
    assert (ran.code, ran.report.ok, ran.report.rows) == (0, True, ())


def test_an_error_comes_back_with_its_causes(tmp_path: Path) -> None:
    """The report has the class of the error and the whole chain; the settings were taken back all the same."""
    asked = request(JobKind.SCHEDULE_CLUSTERING, partitions=["explode"])
    ran = Ran(asked, tmp_path=tmp_path, script="schedule_clustering")
    assert ran.report.error_class == "RuntimeError"
    assert ran.report.error_message == "RuntimeError: boom; caused by ValueError: cause"
    assert "unset hoodie.write.table.version" in ran.calls


def test_a_script_refuses_another_jobs_request(tmp_path: Path) -> None:
    """A request for one job given to another script does nothing."""
    ran = Ran(delete("day=1"), tmp_path=tmp_path, script="execute_clustering")
    assert ran.report.error_message == (
        "ValueError: Job request for 'delete_partitions' was given to the job 'execute_clustering'"
    )


def test_a_script_refuses_a_version_that_it_does_not_know(tmp_path: Path) -> None:
    """The report says which version the script reads."""
    document = {**delete("day=1").to_json(), "version": 2}
    ran = Ran(document, tmp_path=tmp_path, script="delete_partitions")
    assert ran.report.error_message == "ValueError: Job request of version 2; this job reads version 1"


def test_every_document_reads_back_as_it_was_written() -> None:
    """Request, progress, report and handle survive their JSON."""
    asked = delete("day=1")
    progress = JobProgress(stage="s", tasks_done=1, tasks_total=2, active_stages=1, seconds=2.5)
    report = JobReport(ok=False, error_class="E", error_message="m", rows=({"a": 1},), seconds=1.5, spark_version="3.5")
    handle = JobHandle(engine="local", job_id="1:2:/tmp/x")
    assert JobRequest.from_json(json.loads(json.dumps(asked.to_json()))) == asked
    assert JobProgress.from_json(json.loads(json.dumps(progress.to_json()))) == progress
    assert JobReport.from_json(json.loads(json.dumps(report.to_json()))) == report
    assert JobHandle.from_json(json.loads(json.dumps(handle.to_json()))) == handle


def test_an_unknown_version_is_refused_by_name() -> None:
    """The message says which version was found and which is read."""
    with pytest.raises(InvalidSettingError, match=r"job report of version 7 .* reads version 1"):
        JobReport.from_json({"version": 7, "ok": True})


@pytest.mark.parametrize(
    "document", [{}, {"version": 7, "engine": "local", "job_id": "1:2"}, {"version": 1, "job_id": 4}]
)
def test_a_handle_of_another_release_is_one_without_an_id(document: dict[str, Json]) -> None:
    """A stored handle outlives an upgrade: it must not stop a task, and names nothing to touch."""
    assert JobHandle.from_json(document).job_id == ""


def test_equal_requests_have_equal_application_names() -> None:
    """The name depends on what is asked for and on nothing else, so that a retry finds an earlier try."""
    assert delete("day=1").application_name == delete("day=1").application_name
    assert delete("day=1").application_name != delete("day=2").application_name
    assert delete("day=1").application_name.startswith("hudi-maint-delete-partitions-trips-")


def test_options_that_may_be_secret_are_not_in_the_repr() -> None:
    """A lock provider's password is a write option."""
    asked = JobRequest(kind=JobKind.DELETE_PARTITIONS, base_path="/a", table_name="t", write_options={"p": "hunter2"})
    assert "hunter2" not in repr(asked)


def test_only_running_is_not_ended() -> None:
    """A loop over statuses ends on each of the others."""
    assert [status for status in JobStatus if not status.ended] == [JobStatus.RUNNING]
