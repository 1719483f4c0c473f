"""Approving, undoing and cleaning as tasks, on tables that need no engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSkipException,
    DownstreamTasksSkipped,
    TaskAwaitingInput,
)

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.approval import HudiApproveExpiryOperator
from airflow_hudi_maint.operators.clean import HudiCleanOperator, HudiReleaseSavepointsOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator
from airflow_hudi_maint.operators.undo import HudiRestorePartitionsOperator
from airflow_hudi_maint.sensors.undo import HudiUndoWindowSensor
from tests.airflow.fakes import FakeStore, context
from tests.unit.core.storage.builders import TableBuilder, at
from tests.unit.operators.test_steps import run, skipped

KEEP_TWO = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
JOBS = (HudiCleanOperator, HudiReleaseSavepointsOperator, HudiRestorePartitionsOperator)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    builder.commit(at(1), {f"day=2026-11-{day}": [("f1-0", 1000)] for day in (28, 29, 30)})
    return builder


@pytest.mark.parametrize("cls", JOBS)
def test_a_step_that_is_switched_off_reads_nothing(cls: Any, tmp_path: Path) -> None:
    reason, _ = skipped(cls, TableBuilder(base_path=str(tmp_path / "nothing")), enabled="False")
    assert "switched off" in reason


@pytest.mark.parametrize("cls", [*JOBS, HudiUndoWindowSensor, HudiApproveExpiryOperator])
def test_every_template_field_is_an_argument_and_an_attribute(cls: Any) -> None:
    """Mapping a task over a field and rendering it need both."""
    required = {"plan_path": "/p"} if cls is HudiApproveExpiryOperator else {}
    operator = cls(task_id="step", **required)
    assert [name for name in cls.template_fields if not hasattr(operator, name)] == []
    own = [name for name in cls.template_fields if name not in ("subject", "body")]
    cls(task_id="step", **dict.fromkeys(own))


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (HudiCleanOperator, {"cleaner": {"commits": 3}}, "did you mean commits_retained"),
        (HudiCleanOperator, {"cleaner": '{"policy": "KEEP_ALL"}'}, "policy='KEEP_ALL' of the cleaner is unknown"),
        (HudiCleanOperator, {"cleaner": {"commits_retained": "0"}}, "commits_retained=0 of the cleaner"),
        (HudiReleaseSavepointsOperator, {"older_than": "a week"}, "older_than='a week' is no duration"),
        (HudiRestorePartitionsOperator, {}, "No drop of partitions is on the active timeline"),
        (HudiRestorePartitionsOperator, {"keep_new_rows": "perhaps"}, "keep_new_rows='perhaps'"),
        (HudiRestorePartitionsOperator, {"drop": "None"}, "drop='None' is what a template makes of nothing"),
        (HudiRestorePartitionsOperator, {"drop": {"instants": []}}, "that step's result has none"),
        (HudiRestorePartitionsOperator, {"drop": '{"instants": ["1", "2"]}'}, "that step's result has 1, 2"),
        (HudiRestorePartitionsOperator, {"partitions": []}, "partitions is an empty list"),
        (HudiExpirePartitionsOperator, {"policies": KEEP_TWO, "on_changed": "ignore"}, "expected refuse or leave_out"),
        (
            HudiExpirePartitionsOperator,
            {"policies": KEEP_TWO, "approval": {"approved": False}},
            "approves nothing; the plan is not applied",
        ),
        (
            HudiExpirePartitionsOperator,
            {"policies": KEEP_TWO, "approval": {"approved": True, "plan_path": "/other"}},
            "the approval is of the plan '/other'",
        ),
        (
            HudiExpirePartitionsOperator,
            {"policies": KEEP_TWO, "approval": "null"},
            "approval='null' is what a template makes of nothing",
        ),
    ],
)
def test_wrong_arguments_fail_without_a_retry(
    cls: Any, arguments: dict[str, Any], message: str, table: TableBuilder
) -> None:
    """The error names the argument and what would be right."""
    with pytest.raises(AirflowFailException, match=message):
        run(cls, table, **arguments)


def test_idle_steps_skip_themselves_and_say_why(table: TableBuilder) -> None:
    """Fewer commits than the cleaner retains, and no savepoint: no Spark."""
    cleaned, result = skipped(HudiCleanOperator, table)
    released, _ = skipped(HudiReleaseSavepointsOperator, table)
    assert "are retained by KEEP_LATEST_COMMITS (10 commits)" in cleaned
    assert result["outcome"] == "nothing-to-do"
    assert "No savepoint is due" in released


def test_a_rehearsed_restore_tells_the_instant(table: TableBuilder) -> None:
    """A dry run on the newest drop starts no Spark."""
    table.commit(at(50), operation="DELETE_PARTITION", replaced={"day=2026-11-28": ["f1-0"]})
    for drop in (int(at(50)), at(50), {"instants": [at(50)]}, json.dumps({"instants": [at(50)]}), [int(at(50))]):
        result = run(HudiRestorePartitionsOperator, table, drop=drop, plan_only="true")
        assert (result["outcome"], result["partitions"]) == ("dry-run", 1)


def plan_of(table: TableBuilder) -> dict[str, Any]:
    return run(HudiPlanExpiryOperator, table, policies=KEEP_TWO, on_guard="warn")


def approve(table: TableBuilder, plan: Any, **arguments: Any) -> HudiApproveExpiryOperator:
    return HudiApproveExpiryOperator(
        task_id="approve", hudi_conn_id=None, base_path=table.base_path, plan_path=plan, **arguments
    )


def test_a_small_plan_needs_nobody(table: TableBuilder) -> None:
    """Within both limits the figures approve it; the report will say so."""
    plan = plan_of(table)
    result = approve(table, plan, auto_approve_partitions="1", auto_approve_bytes=10**6).execute(context())
    assert (result["approved"], result["how"], result["plan_path"]) == (True, "figures", plan["plan_path"])


@pytest.mark.parametrize(
    "limits", [{}, {"auto_approve_partitions": 0}, {"auto_approve_partitions": 5, "auto_approve_bytes": 10}]
)
def test_a_larger_plan_is_shown_to_a_person(
    limits: dict[str, int], table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request that the UI shows has the plan as a table; without an answer in time it is rejected."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **one: asked.update(one))
    ti = type("TI", (), {"id": "1"})()
    with pytest.raises(TaskAwaitingInput):
        approve(table, plan_of(table), **limits).execute({**context(), "task_instance": ti})
    assert "| `day=2026-11-28` |" in asked["body"]
    assert asked["subject"] == "Expiry of partitions: 1 partition of trips"
    assert (asked["options"], asked["defaults"]) == (["Approve", "Reject"], ["Reject"])


def test_another_plan_than_the_one_that_is_shown_is_not_asked_about(
    table: TableBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow keeps the request of a cleared task: a person would read one plan and approve another."""
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **_: None)
    first, store = plan_of(table), FakeStore()
    task = {**context(store=store), "task_instance": type("TI", (), {"id": "1"})()}
    for _ in range(2):  # cleared beneath an unchanged plan: asks again
        with pytest.raises(TaskAwaitingInput):
            approve(table, first).execute(task)
    table.commit(at(30), {"day=2026-12-01": [("f2-0", 10)]})
    second = plan_of(table)
    with pytest.raises(AirflowFailException, match="Trigger a new run"):
        approve(table, second).execute(task)
    late = approve(table, second).execute_complete(task, answer("Approve", user={"id": "7", "name": "ada"}))
    assert late["plan_path"] == first["plan_path"]
    with pytest.raises(AirflowFailException, match="the approval is of the plan"):
        run(HudiExpirePartitionsOperator, table, plan_path=second, approval=late, plan_only=True)


def test_who_rejected_is_handed_on_although_the_rest_is_skipped(table: TableBuilder) -> None:
    """Airflow skips by an exception, behind which nothing is returned."""
    with DAG("approval", schedule=None):
        operator = approve(table, plan_of(table))
        operator >> EmptyOperator(task_id="drop")
    given = context()
    with pytest.raises(DownstreamTasksSkipped):
        operator.execute_complete({**given, "task": operator}, answer("Reject", user={"id": "7", "name": "ada"}))
    result = given["ti"].pushed["return_value"]
    assert (result["approved"], result["by"], result["how"]) == (False, "ada", "person")


def answer(choice: str, *, user: dict[str, str] | None) -> dict[str, Any]:
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    return {"chosen_options": [choice], "params_input": {}, "responded_at": moment, "responded_by_user": user}


def test_who_approved_and_when_is_handed_on(table: TableBuilder) -> None:
    """And the drop's report keeps it."""
    plan = plan_of(table)
    given = approve(table, plan).execute_complete(context(), answer("Approve", user={"id": "7", "name": "ada"}))
    assert given == {
        "approved": True,
        "by": "ada",
        "at": "2026-12-01T00:00:00+00:00",
        "how": "person",
        "plan_path": plan["plan_path"],
    }
    result = run(HudiExpirePartitionsOperator, table, plan_path=plan, approval=given, plan_only=True)
    report = Path(result["report_path"]).read_text()
    assert '"approval":"approved by ada at 2026-12-01T00:00:00+00:00"' in report.replace('": ', '":')


def test_an_approval_that_did_not_come_is_none(table: TableBuilder) -> None:
    """A task that approves was marked as done by hand, say: its result was taken for an argument that is left out."""
    plan = plan_of(table)
    operator = HudiExpirePartitionsOperator(
        task_id="drop", hudi_conn_id=None, base_path=table.base_path, plan_path=plan, approval="{{ nothing }}"
    )
    operator.approval = None  # as rendering leaves it
    with pytest.raises(AirflowFailException, match="left no result: nobody agreed, and nothing is dropped"):
        operator.execute(context())
    left_out = run(HudiExpirePartitionsOperator, table, plan_path=plan, approval="", plan_only=True)
    assert left_out["outcome"] == "dry-run"


def test_nobody_in_time_is_a_rejection(table: TableBuilder) -> None:
    """Airflow answers with the default then, and with no user."""
    given = approve(table, plan_of(table)).execute_complete(context(), answer("Reject", user=None))
    assert (given["approved"], given["how"], given["by"]) == (False, "timeout", None)


def test_a_plan_task_that_was_skipped_skips_the_approval(table: TableBuilder) -> None:
    with pytest.raises(AirflowSkipException, match="left no plan"):
        approve(table, "").execute(context())


def test_the_sensor_fires_when_the_window_closes(table: TableBuilder) -> None:
    """Wide open after one drop of ten retained commits; closing where the cleaner retains two."""
    table.commit(at(50), operation="DELETE_PARTITION", replaced={"day=2026-11-28": ["f1-0"]})
    arguments = {"task_id": "wait", "hudi_conn_id": None, "base_path": table.base_path}
    wide = HudiUndoWindowSensor(**arguments).poke(context())
    closing = HudiUndoWindowSensor(**arguments, cleaner={"commits_retained": 2}).poke(context())
    assert (wide.is_done, closing.is_done) == (False, True)
    assert closing.xcom_value["drop"] == at(50)
    assert closing.xcom_value["commits_left"] == 1


def test_the_connection_s_retention_closes_the_window(table: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report of the drop counts by the connection's write options, and so do sensor and trigger."""
    table.commit(at(50), operation="DELETE_PARTITION", replaced={"day=2026-11-28": ["f1-0"]})
    extra = json.dumps({"write_options": {"hoodie.clean.commits.retained": "2"}})
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TWO", json.dumps({"conn_type": "hudi", "extra": extra}))
    sensor = HudiUndoWindowSensor(task_id="wait", hudi_conn_id="hudi_two", base_path=table.base_path)
    looked = sensor.poke(context())
    triggered = sensor.make_trigger().answer(HudiHook("hudi_two", base_path=table.base_path).workspace())
    assert looked.xcom_value == triggered
    assert looked.xcom_value["commits_left"] == 1


def test_a_named_drop_that_is_gone_ends_the_wait(table: TableBuilder) -> None:
    """Archived or rolled back: there is nothing to wait for, and the result says so."""
    found = HudiUndoWindowSensor(
        task_id="wait", hudi_conn_id=None, base_path=table.base_path, drop=at(59), poke_interval=1
    ).poke(context())
    assert "not on the active timeline" in found.xcom_value["message"]


def test_a_live_writer_is_left_to_the_retries(table: TableBuilder) -> None:
    """A clean beside somebody who writes is refused before Spark starts."""
    table.commit(at(50), {"day=2026-11-30": [("late-0", 5)]})
    table.pending(at(55), "commit")
    with pytest.raises(PendingActionError, match=at(55)):
        run(HudiCleanOperator, table, cleaner={"commits_retained": 1})


def test_the_trigger_is_made_again_from_its_arguments(table: TableBuilder) -> None:
    """What another triggerer takes over asks the same question."""
    sensor = HudiUndoWindowSensor(
        task_id="wait", hudi_conn_id=None, base_path=table.base_path, drop=int(at(50)), margin="60"
    )
    path, arguments = sensor.make_trigger().serialize()
    assert path == "airflow_hudi_maint.triggers.timeline.HudiUndoWindowTrigger"
    assert (arguments["drop"], arguments["margin_seconds"]) == (at(50), 60.0)
