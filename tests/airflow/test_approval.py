"""The DAG that asks a person before partitions are dropped, run from the first task to the last without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import select

from tests.airflow.java import CountingJava
from tests.airflow.marks import AIRFLOW
from tests.airflow.tables import TableBuilder, three_days
from tests.airflow.test_dags import result, states

pytestmark = AIRFLOW

DAG_ID = "hudi_expiry_with_approval"
KEEP_TWO = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
IDLE = {"release_savepoints": "skipped", "clean": "skipped"}


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days(str(tmp_path / "trips"))


@pytest.fixture
def dag(dag_bag: Any) -> Any:
    """The DAG; its drop stops before the engine."""
    found = dag_bag.dags[DAG_ID]
    found.get_task("expire").plan_only = True
    return found


@contextmanager
def somebody_answers(choice: str, *, name: str | None) -> Iterator[list[str]]:
    """Answer the request as the API server does, or (``name`` None) as the scheduler does when the time is over.

    Yields what was shown: one subject and body for each request. Airflow's own internals, as in conftest.py.
    """
    shown: list[str] = []
    over = Event()

    def wait_and_answer() -> None:
        while not over.wait(0.2):
            shown.extend(_answer(choice, name=name))

    thread = Thread(target=wait_and_answer, daemon=True)
    thread.start()
    try:
        yield shown
    finally:
        over.set()
        thread.join()


def _answer(choice: str, *, name: str | None) -> Iterator[str]:
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.trigger import handle_event_submit
    from airflow.triggers.base import TriggerEvent
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState

    with create_session() as session:
        waiting = TaskInstance.state == TaskInstanceState.AWAITING_INPUT
        query = select(HITLDetail, TaskInstance).join(TaskInstance, TaskInstance.id == HITLDetail.ti_id).where(waiting)
        for detail, ti in session.execute(query).all():
            detail.chosen_options, detail.params_input = [choice], {}
            detail.responded_at = datetime.now(UTC)
            detail.responded_by = None if name is None else {"id": name, "name": name}
            event = TriggerEvent(detail.as_resume_event_payload(timedout=name is None))
            handle_event_submit(event, task_instance=ti, session=session)
            yield from (detail.subject, detail.body or "")


def test_every_setting_is_explained_in_the_form(dag: Any) -> None:
    """Each has a title, an explanation and a section, and its default is valid."""
    assert len(dag.params) > 5
    for name in dag.params:
        param = dag.params.get_param(name)
        assert {"title", "description_md", "section", "type"} <= set(param.schema), name
        param.resolve()


def test_the_steps_come_one_after_the_other(dag: Any) -> None:
    """A run never overtakes the one before it, and nothing is scheduled by itself."""
    order = [task.task_id for task in dag.topological_sort()]
    assert order == ["plan", "approve", "expire", "release_savepoints", "clean"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == (None, False, 1)


def test_a_small_plan_is_approved_by_its_figures(
    dag: Any, run_dag: Callable[..., Any], table: TableBuilder, counting_java: CountingJava
) -> None:
    """One partition of three is within the form's limits: nobody is asked, and the report of the drop says so."""
    run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path, policies=KEEP_TWO)
    assert states(run) == {"plan": "success", "approve": "success", "expire": "success", **IDLE}
    given = result(run, "approve")
    assert (given["approved"], given["how"], given["by"]) == (True, "figures", None)
    assert given["plan_path"] == result(run, "plan")["plan_path"] == result(run, "expire")["plan_path"]
    assert approval_in_report(run) == f"approved by figures at {given['at']}"
    assert counting_java.starts == []


def test_a_person_approves_what_was_shown(dag: Any, run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """The request has the plan as a table; who approved it is in the report of the drop."""
    with somebody_answers("Approve", name="ada") as shown:
        run = run_dag(
            dag, hudi_conn_id=None, base_path=table.base_path, policies=KEEP_TWO, auto_approve_partitions=None
        )
    assert states(run) == {"plan": "success", "approve": "success", "expire": "success", **IDLE}
    assert shown[0] == "Expiry of partitions: 1 partition of trips"
    assert "| partition | bytes |" in shown[1]
    assert approval_in_report(run) == f"approved by ada at {result(run, 'approve')['at']}"


@pytest.mark.parametrize(("name", "how"), [("grace", "person"), (None, "timeout")])
def test_a_rejection_drops_nothing_and_the_rest_goes_on(
    name: str | None, how: str, dag: Any, run_dag: Callable[..., Any], table: TableBuilder
) -> None:
    """The drop is skipped, old savepoints are seen to all the same, and who rejected is kept."""
    with somebody_answers("Reject", name=name):
        run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path, policies=KEEP_TWO, auto_approve_mib=0)
    assert states(run) == {"plan": "success", "approve": "success", "expire": "skipped", **IDLE}
    assert str(run.state) == "success"
    given = result(run, "approve")
    assert (given["approved"], given["how"], given["by"]) == (False, how, name)
    assert result(run, "release_savepoints")["outcome"] == "nothing-to-do"


def test_a_table_without_a_policy_asks_nobody(dag: Any, run_dag: Callable[..., Any], table: TableBuilder) -> None:
    """Without a plan there is nothing to approve and nothing to drop."""
    run = run_dag(dag, hudi_conn_id=None, base_path=table.base_path)
    assert states(run) == {"plan": "skipped", "approve": "skipped", "expire": "skipped", **IDLE}


def approval_in_report(run: Any) -> str:
    report: dict[str, Any] = json.loads(Path(result(run, "expire")["report_path"]).read_text())
    return str(report["approval"])
