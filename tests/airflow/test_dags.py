"""The DAGs that the project ships: parsed, and run from the first task to the last."""

from __future__ import annotations

import html
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import BranchPythonOperator, PythonOperator
from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.task_groups.maintenance import hudi_maintenance
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder, three_days

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.airflow.java import CountingJava

pytestmark = AIRFLOW

STEPS = (
    "gather_statistics",
    "plan_expiry",
    "expire_partitions",
    "schedule_compaction",
    "execute_compaction",
    "schedule_clustering",
    "execute_clustering",
    "gather_statistics_after",
    "report",
    "done",
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days(str(tmp_path / "trips"))


def states(run: Any) -> dict[str, str]:
    return {ti.task_id: str(ti.state) for ti in run.get_task_instances()}


def result(run: Any, task_id: str) -> Any:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        query = XComModel.get_many(key="return_value", run_id=run.run_id, dag_ids=run.dag_id, task_ids=task_id)
        row = session.scalar(query)
        return None if row is None else XComModel.deserialize_value(row)


def test_every_dag_parses(dag_bag: Any) -> None:
    """No DAG has an error, and files that are none are left alone."""
    assert dag_bag.import_errors == {}
    shipped = {"hudi_table_maintenance", "hudi_expiry_with_approval", "ingest_then_maintain", "hudi_async_clustering"}
    shipped |= {"merge_small_files"}
    assert shipped <= set(dag_bag.dags)


def test_the_maintenance_dag_is_safe_to_schedule(dag_bag: Any) -> None:
    """It runs daily, makes up for no missed day, and never beside itself."""
    dag = dag_bag.dags["hudi_table_maintenance"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("@daily", False, 1)
    assert dag.task_dict.keys() == set(STEPS)


def test_every_setting_is_explained_in_the_form(dag_bag: Any) -> None:
    """Each has a title, an explanation and a section, and its default is valid."""
    params = dag_bag.dags["hudi_table_maintenance"].params
    for name in params:
        param: Param = params.get_param(name)
        assert {"title", "description_md", "section", "type"} <= set(param.schema), name
        param.resolve()


def test_an_idle_run_skips_every_step_and_starts_no_java(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder, counting_java: CountingJava
) -> None:
    """Nothing expires and nothing is small: each step says so, the report is written, and no JVM is started."""
    run = run_dag(dag_bag.dags["hudi_table_maintenance"], hudi_conn_id=None, base_path=table.base_path)
    assert states(run) == {
        "gather_statistics": "success",
        "plan_expiry": "skipped",
        "expire_partitions": "skipped",
        "schedule_compaction": "skipped",
        "execute_compaction": "skipped",
        "schedule_clustering": "skipped",
        "execute_clustering": "skipped",
        "gather_statistics_after": "success",
        "report": "success",
        "done": "success",
    }
    assert str(run.state) == "success"
    assert counting_java.starts == []
    report = result(run, "report")
    assert Path(report["report_path"]).is_file()
    assert result(run, "schedule_clustering")["outcome"] == "nothing-to-do"
    assert "copy-on-write" in result(run, "schedule_compaction")["message"]


def test_a_dry_run_plans_and_reports(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder, counting_java: CountingJava
) -> None:
    """The form's policies arrive as they are; what would expire is in the report, and the table is as it was."""
    before = sorted(path for path in Path(table.base_path).rglob("*") if ".airflow_hudi_maint" not in path.parts)
    run = run_dag(
        dag_bag.dags["hudi_table_maintenance"],
        hudi_conn_id=None,
        base_path=table.base_path,
        dry_run=True,
        policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2, "default": True}],
    )
    assert result(run, "expire_partitions")["outcome"] == "dry-run"
    assert result(run, "plan_expiry")["expired"] == 1
    assert states(run)["execute_clustering"] == "skipped"
    assert str(run.state) == "success"
    after = sorted(path for path in Path(table.base_path).rglob("*") if ".airflow_hudi_maint" not in path.parts)
    assert after == before
    assert counting_java.starts == []


def test_steps_that_are_left_out_are_skipped(dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """Statistics are always gathered; an unknown step is refused before anything runs."""
    dag = dag_bag.dags["hudi_table_maintenance"]
    run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path, steps=["report"])
    assert {name for name, state in states(run).items() if state == "success"} == {
        "gather_statistics",
        "gather_statistics_after",
        "report",
        "done",
    }
    with pytest.raises(Exception, match="expire_everything"):
        run_dag(dag, hudi_conn_id=None, base_path=table.base_path, steps=["expire_everything"])


GROUP_SKIPPED = dict.fromkeys(STEPS, "skipped")


def test_a_branch_around_the_group_skips_all_of_it(run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """No step takes the branch's skip for one of a step with nothing to do; nothing is read or written."""
    with DAG("branched", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        branch = BranchPythonOperator(task_id="branch", python_callable=lambda: "elsewhere")
        elsewhere = EmptyOperator(task_id="elsewhere")
        group = hudi_maintenance(hudi_conn_id=None, base_path=table.base_path, prefix_group_id=False)
        branch >> [elsewhere, group]
    run = run_dag(dag)
    assert states(run) == {"branch": "success", "elsewhere": "success", **GROUP_SKIPPED}
    assert not (Path(table.base_path) / ".hoodie/.airflow_hudi_maint").exists()


def test_an_ingestion_that_skips_itself_skips_the_group(run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """There is nothing new to maintain, and what follows the group is skipped as well."""

    def nothing_new() -> None:
        raise AirflowSkipException("nothing new")

    with DAG("skipped_ingestion", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        ingest = PythonOperator(task_id="ingest", python_callable=nothing_new)
        group = hudi_maintenance(hudi_conn_id=None, base_path=table.base_path, prefix_group_id=False)
        ingest >> group >> EmptyOperator(task_id="publish")
    run = run_dag(dag)
    assert states(run) == {"ingest": "skipped", "publish": "skipped", **GROUP_SKIPPED}
    assert not (Path(table.base_path) / ".hoodie/.airflow_hudi_maint").exists()


def test_a_failed_ingestion_fails_the_group_before_it_begins(run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """There is no report of a run that did not begin."""

    def fail() -> None:
        raise AirflowFailException("no source")

    with DAG("failed_ingestion", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        ingest = PythonOperator(task_id="ingest", python_callable=fail)
        ingest >> hudi_maintenance(hudi_conn_id=None, base_path=table.base_path, prefix_group_id=False)
    run = run_dag(dag)
    assert states(run) == {"ingest": "failed", **dict.fromkeys(STEPS, "upstream_failed")}


def test_the_report_shows_the_steps_of_its_own_run(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder
) -> None:
    """It gets what the steps handed on, skipped ones included, and the form's title."""
    run = run_dag(
        dag_bag.dags["hudi_table_maintenance"],
        hudi_conn_id=None,
        base_path=table.base_path,
        dry_run=True,
        report_title="Trips of the week",
        policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}],
    )
    page = Path(result(run, "report")["report_path"]).read_text()
    assert "Trips of the week" in page
    for task_id in ("expire_partitions", "schedule_clustering"):
        assert html.escape(result(run, task_id)["message"]) in page
    assert "Expiry plan" in page


def test_partitions_of_the_form_reach_the_clustering(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder
) -> None:
    """A partition that the table lacks is refused, so the list did arrive."""
    dag = dag_bag.dags["hudi_table_maintenance"]
    run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path, partitions=["day=1999-01-01"])
    assert states(run)["schedule_clustering"] == "failed"


def test_a_lost_plan_is_not_replaced_by_another(dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """The plan task counts as done and left no result: nothing is dropped by the table's own policies."""
    dag = dag_bag.dags["hudi_table_maintenance"]
    dag.task_dict["plan_expiry"].do_xcom_push = False
    every = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
    run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path, policies=every)
    assert (states(run)["plan_expiry"], states(run)["expire_partitions"]) == ("success", "skipped")
    assert result(run, "expire_partitions") is None


def test_a_failed_step_fails_the_run_and_is_reported(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder
) -> None:
    """A guard trips: the steps after it do not run, the report is written, and the run counts as failed."""
    run = run_dag(
        dag_bag.dags["hudi_table_maintenance"],
        hudi_conn_id=None,
        base_path=table.base_path,
        policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 1}],
        guards={"max_partition_share": 0.1},
    )
    assert states(run) == {
        "gather_statistics": "success",
        "plan_expiry": "success",
        "expire_partitions": "failed",
        "schedule_compaction": "upstream_failed",
        "execute_compaction": "upstream_failed",
        "schedule_clustering": "upstream_failed",
        "execute_clustering": "upstream_failed",
        "gather_statistics_after": "upstream_failed",
        "report": "success",
        "done": "upstream_failed",
    }
    assert str(run.state) == "failed"
    written = result(run, "report")
    page = Path(written["report_path"]).read_text()
    for said in (written["summary"], page):
        assert "Failed: expire_partitions; 5 steps after it did not run." in said
    assert "Nothing had to be done" not in page


def test_how_the_group_drops_is_a_setting() -> None:
    """A savepoint before the drop, and leaving changed partitions out, are the caller's choice."""
    with DAG("careful", schedule=None) as dag:
        hudi_maintenance(savepoint=True, on_changed="leave_out")
    drop: Any = dag.get_task("hudi_maintenance.expire_partitions")
    assert (drop.savepoint, drop.on_changed) == (True, "leave_out")


def test_the_group_composes_into_a_dag(
    run_dag: Callable[..., Any], table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its settings may be plain values, its table comes from a connection, and what follows it waits for all of it."""
    monkeypatch.setenv("AIRFLOW_CONN_TRIPS", json.dumps({"conn_type": "hudi", "host": table.base_path}))
    with DAG("composed", schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC)) as dag:
        group = hudi_maintenance(
            "trips", hudi_conn_id="trips", clustering={"target_file_bytes": 9000, "small_file_bytes": 10}
        )
    assert {task.task_id for task in group.get_leaves()} == {"trips.done"}
    assert {task.task_id for task in group.get_roots()} == {"trips.gather_statistics"}
    run = run_dag(dag)
    assert (str(run.state), len(states(run))) == ("success", len(STEPS))
    assert result(run, "trips.gather_statistics")["small_files"] == 0


def test_asynchronous_clustering_with_nothing_to_do_skips_all_and_starts_no_java(
    dag_bag: Any, run_dag: Callable[..., Any], table: TableBuilder, counting_java: CountingJava
) -> None:
    """No file is small: nothing is scheduled, so nothing is waited for, and nothing is executed."""
    run = run_dag(dag_bag.dags["hudi_async_clustering"], hudi_conn_id=None, base_path=table.base_path)
    assert states(run) == dict.fromkeys(("schedule", "wait_for_compactions", "execute"), "skipped")
    assert str(run.state) == "success"
    assert "No clustering plan of ours is pending" in result(run, "execute")["message"]
    assert counting_java.starts == []


def test_asynchronous_clustering_waits_in_the_triggerer_and_executes_in_a_pool(dag_bag: Any) -> None:
    """The job takes a slot of its own pool, the wait takes no worker, and every setting is explained in the form."""
    dag = dag_bag.dags["hudi_async_clustering"]
    wait = dag.task_dict["wait_for_compactions"]
    assert (dag.task_dict["execute"].pool, wait.deferrable, wait.timeout) == ("hudi_clustering", True, 6 * 3600)
    assert all(
        {"title", "description_md", "section", "type"} <= set(dag.params.get_param(name).schema) for name in dag.params
    )
