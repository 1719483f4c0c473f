"""The operators on tables that need no engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator
from airflow_hudi_maint.operators.report import HudiReportOperator
from airflow_hudi_maint.operators.small_files import HudiCompactSmallFilesOperator
from airflow_hudi_maint.operators.statistics import HudiGatherStatisticsOperator
from airflow_hudi_maint.sensors.commit import HudiCommitSensor
from airflow_hudi_maint.sensors.idle import HudiTableIdleSensor
from tests.airflow.fakes import FakeEvent, FakeTaskInstance, context
from tests.airflow.tables import TableBuilder, three_days

KEEP_TWO = [{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
EVERY = (
    HudiGatherStatisticsOperator,
    HudiPlanExpiryOperator,
    HudiExpirePartitionsOperator,
    HudiScheduleClusteringOperator,
    HudiExecuteClusteringOperator,
    HudiCompactSmallFilesOperator,
    HudiReportOperator,
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days(str(tmp_path / "trips"))


def run(cls: Any, table: TableBuilder, *, given: Any = None, **arguments: Any) -> dict[str, Any]:
    operator = cls(**{"task_id": "step", "hudi_conn_id": None, "base_path": table.base_path, **arguments})
    result: dict[str, Any] = operator.execute(given or context())
    assert json.loads(json.dumps(result)) == result, "results are JSON-native"
    return result


def skipped(cls: Any, table: TableBuilder, **arguments: Any) -> tuple[str, Any]:
    ti = FakeTaskInstance()
    with pytest.raises(AirflowSkipException) as skip:
        run(cls, table, given=context(ti=ti), **arguments)
    return str(skip.value), ti.pushed.get("return_value")


@pytest.mark.parametrize("cls", EVERY)
def test_a_step_that_is_switched_off_reads_nothing(cls: Any, tmp_path: Path) -> None:
    """There is not even a table, and the skip says why."""
    reason, pushed = skipped(cls, TableBuilder(base_path=str(tmp_path / "nothing")), enabled="False")
    assert reason == "step is switched off (enabled=False)"
    assert pushed is None


@pytest.mark.parametrize("cls", EVERY)
def test_a_path_without_a_table_fails_without_a_retry(cls: Any, tmp_path: Path) -> None:
    """Trying again cannot help, so no retry is spent on it."""
    with pytest.raises(AirflowFailException, match="TableNotFoundError"):
        run(cls, TableBuilder(base_path=str(tmp_path / "nothing")))


@pytest.mark.parametrize("cls", [*EVERY, HudiCommitSensor, HudiTableIdleSensor])
def test_every_template_field_is_an_argument_and_an_attribute(cls: Any) -> None:
    """Mapping a task over a field and rendering it need both."""
    operator = cls(task_id="step")
    missing = [name for name in cls.template_fields if not hasattr(operator, name)]
    assert missing == []
    cls(task_id="step", **dict.fromkeys(cls.template_fields))


def test_statistics_are_gathered_fully_and_then_incrementally(table: TableBuilder) -> None:
    """The second run finds nothing new, and its document has the same rows."""
    first = run(HudiGatherStatisticsOperator, table, small_file_bytes="2000")
    assert (first["partitions"], first["bytes"], first["small_files"]) == (3, 3000, 3)
    assert (first["table"], first["gathered"]) == ("trips", "full")
    assert Path(first["statistics_path"]).is_file()
    second = run(HudiGatherStatisticsOperator, table, small_file_bytes="2000")
    assert second["gathered"] == "incremental"
    assert {**second, "gathered": "full", "reason": first["reason"]} == first


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (
            HudiGatherStatisticsOperator,
            {"mode": "half"},
            "mode 'half' is unknown; expected one of auto, full, incremental",
        ),
        (
            HudiGatherStatisticsOperator,
            {"listing": "walk"},
            "listing 'walk' is unknown; expected one of auto, directory",
        ),
        (HudiGatherStatisticsOperator, {"listing": "metadata"}, "MetadataTableError"),
        (HudiGatherStatisticsOperator, {"small_file_bytes": 0}, "small_file_bytes=0; expected at least 1"),
        (HudiGatherStatisticsOperator, {"small_file_bytes": "1 MiB"}, "small_file_bytes='1 MiB' is no whole number"),
        (HudiPlanExpiryOperator, {"policies": "[{]"}, "policies is no JSON"),
        (HudiPlanExpiryOperator, {"policies": [{"policy": "KEEP_BY_TIME"}]}, "InvalidPolicyError"),
        (HudiPlanExpiryOperator, {"guards": {"max_partition_shares": 1}}, "did you mean 'max_partition_share'"),
        (HudiPlanExpiryOperator, {"guards": '{"max_byte_share": 2}'}, "max_byte_share=2 is no share"),
        (HudiPlanExpiryOperator, {"guards": {"max_byte_share": [1]}}, "guards: max_byte_share=.1. is no share"),
        (HudiPlanExpiryOperator, {"guards": {"max_byte_share": True}}, "max_byte_share=True is no share"),
        (HudiPlanExpiryOperator, {"base_path": "None"}, "base_path='None' is what a template makes of nothing"),
        (HudiPlanExpiryOperator, {"hudi_conn_id": "null"}, "hudi_conn_id='null' is what a template makes of nothing"),
        (
            HudiScheduleClusteringOperator,
            {"target_file_bytes": "100", "small_file_bytes": 200},
            "is not above small_file",
        ),
        (HudiScheduleClusteringOperator, {"layout": "spiral"}, "layout='spiral' is unknown"),
        (HudiScheduleClusteringOperator, {"layout": "zorder"}, "needs sort_columns"),
        (HudiScheduleClusteringOperator, {"strategy": "newest"}, "known are size_based, recent_days"),
        (HudiScheduleClusteringOperator, {"strategy": "cold"}, "needs the option idle_days"),
        (
            HudiScheduleClusteringOperator,
            {"strategy": "largest", "strategy_options": '{"number": 3}'},
            "has no option 'number'; it takes count",
        ),
        (HudiScheduleClusteringOperator, {"execution_strategy": "single_file_sort"}, "needs sort_columns"),
        (HudiScheduleClusteringOperator, {"partitions": []}, "partitions is an empty list"),
        (HudiScheduleClusteringOperator, {"partitions": "day=1999-01-01"}, "UnknownPartitionError"),
        (
            HudiScheduleClusteringOperator,
            {"partitions": "None"},
            "partitions='None' is what a template makes of nothing",
        ),
        (
            HudiScheduleClusteringOperator,
            {"partitions": "null"},
            "partitions='null' is what a template makes of nothing",
        ),
        (HudiScheduleClusteringOperator, {"sort_columns": "nope"}, "UnknownColumnError"),
        (HudiExecuteClusteringOperator, {"instants": "20200101000000000"}, "UnknownInstantError"),
        (HudiCompactSmallFilesOperator, {"job_timeout": "soon"}, "job_timeout='soon' is no duration"),
        (HudiCompactSmallFilesOperator, {"min_files_removed": "0"}, "min_files_removed=0 is too small"),
        (HudiCompactSmallFilesOperator, {"max_bytes_per_file_removed": "x"}, "max_bytes_per_file_removed='x' is no"),
        (HudiReportOperator, {"step_reports": {"x": 1}}, "is no list of paths or results"),
        (HudiExpirePartitionsOperator, {"plan_path": {"report_path": "x"}}, "without 'plan_path'"),
        (HudiExpirePartitionsOperator, {"plan_path": "None"}, "plan_path='None' is what a template makes of nothing"),
    ],
)
def test_bad_input_fails_without_a_retry_and_says_what(
    table: TableBuilder, cls: Any, arguments: dict[str, Any], message: str
) -> None:
    """The error names the argument, its value and what is expected."""
    with pytest.raises(AirflowFailException, match=message.replace("[", r"\[")):
        run(cls, table, **arguments)


def test_an_expiry_is_planned_from_rendered_policies(table: TableBuilder) -> None:
    """Policies may be a list or the JSON that a template made of one; nothing is deleted."""
    plan = run(HudiPlanExpiryOperator, table, policies=json.dumps(KEEP_TWO))
    assert (plan["partitions"], plan["expired"], plan["kept"], plan["expired_bytes"]) == (3, 1, 2, 1000)
    (written,) = json.loads(Path(plan["plan_path"]).read_text())["policies"]
    assert written == {**KEEP_TWO[0], "source": "argument policies"}


def test_without_any_policy_the_planning_skips_itself(table: TableBuilder) -> None:
    """The plan is written all the same, and handed on to the tasks after it."""
    reason, pushed = skipped(HudiPlanExpiryOperator, table)
    assert reason == "the table has no TTL policy and none was given"
    assert pushed["expired"] == 0
    again = run(HudiPlanExpiryOperator, table, skip_when_idle="false")
    assert {**again, "plan_path": pushed["plan_path"]} == pushed
    assert Path(again["plan_path"]).is_file()


def test_an_expiry_with_nothing_to_drop_skips_itself(table: TableBuilder) -> None:
    """It says why, and hands its report on."""
    plan = run(HudiPlanExpiryOperator, table, policies=[{**KEEP_TWO[0], "policyValue": 9}])
    reason, pushed = skipped(HudiExpirePartitionsOperator, table, plan_path=plan)
    assert reason.startswith("Nothing expires")
    assert pushed["outcome"] == "nothing-to-do"
    assert Path(pushed["report_path"]).is_file()


def test_a_plan_only_run_reports_and_changes_nothing(table: TableBuilder) -> None:
    """The partition that would go is counted in the report."""
    result = run(HudiExpirePartitionsOperator, table, policies=KEEP_TWO, plan_only="True")
    assert (result["outcome"], result["partitions"], result["bytes_before"]) == ("dry-run", 1, 1000)


def test_a_dry_run_executes_no_clustering_and_skips_or_says_so(table: TableBuilder) -> None:
    """It is a task with nothing to do, with the switch of one; the instants may be numbers."""
    asked = {"plan_only": "True", "instants": [20261130053458356]}
    result = run(HudiExecuteClusteringOperator, table, skip_when_idle=False, **asked)
    assert (result["outcome"], result["report_path"]) == ("dry-run", None)
    assert (result["base_path"], result["instants"]) == (table.base_path, ["20261130053458356"])
    assert skipped(HudiExecuteClusteringOperator, table, **asked) == (result["message"], result)


def test_a_plan_that_was_asked_for_and_never_came_is_not_replaced(table: TableBuilder) -> None:
    """The plan task left no result: planning by the table's own policies is not what was asked for."""
    operator = HudiExpirePartitionsOperator(
        task_id="step", hudi_conn_id=None, base_path=table.base_path, plan_path="{{ ti.xcom_pull('plan') }}"
    )
    operator.plan_path = None  # what rendering makes of it
    with pytest.raises(AirflowSkipException, match="the plan task left no plan"):
        operator.execute(context())
    assert not (Path(table.base_path) / ".hoodie/.airflow_hudi_maint").exists()
    for left_out in (None, ""):
        reason, _ = skipped(HudiExpirePartitionsOperator, table, plan_path=left_out)
        assert reason.startswith("Nothing expires"), "planned now"


def test_small_files_are_judged_by_the_operator_s_limits(tmp_path: Path) -> None:
    """Three files become one; asking for more than the two that go leaves the partition alone."""
    table = TableBuilder(base_path=str(tmp_path / "trips")).create()
    table.commit({"day=1": [1000, 1000, 1000]}, at=datetime.now(UTC) - timedelta(days=1))
    sizes = {"target_file_bytes": 10000, "small_file_bytes": 5000, "max_group_bytes": 20000, "plan_only": True}
    for limits, chosen in (
        ({}, 1),
        ({"min_files_removed": "2", "max_bytes_per_file_removed": "1500"}, 1),
        ({"min_files_removed": "3"}, 0),
        ({"max_bytes_per_file_removed": 1499}, 0),
    ):
        assert run(HudiCompactSmallFilesOperator, table, **sizes, **limits)["partitions"] == chosen


def test_a_strategy_and_its_options_choose_the_partitions(tmp_path: Path) -> None:
    """Of three days one is chosen, by options as JSON, and the plan says of the others why not."""
    table = TableBuilder(base_path=str(tmp_path / "trips")).create()
    table.commit({f"day={day}": [1000, 1000] for day in (1, 2, 3)}, at=datetime.now(UTC) - timedelta(days=1))
    sizes = {"target_file_bytes": 10000, "small_file_bytes": 5000, "max_group_bytes": 20000, "plan_only": True}
    options = '{"lookback": 1, "skip_from_latest": "1"}'
    result = run(HudiScheduleClusteringOperator, table, **sizes, strategy="recent_days", strategy_options=options)
    entries = json.loads(Path(result["plan_path"]).read_text())["entries"]
    assert ["keep", "cluster", "keep"] == [entry["decision"] for entry in entries]


def test_a_step_says_its_message_and_each_warning_once(table: TableBuilder, capsys: pytest.CaptureFixture[str]) -> None:
    """The log has one line for each, a warning as one."""
    table.pending(at=datetime.now(UTC) - timedelta(seconds=1))
    result = run(HudiExpirePartitionsOperator, table, policies=KEEP_TWO, plan_only=True)
    log = capsys.readouterr().out
    assert log.count(result["message"]) == 1
    (refused,) = [line for line in log.splitlines() if "a real run would be refused now" in line]
    assert "[warning" in refused
    assert "Warning:" not in log


def test_a_guard_refuses_a_plan_without_a_retry(table: TableBuilder) -> None:
    """A plan that drops too much stays refused until someone decides."""
    with pytest.raises(AirflowFailException, match=r"GuardTrippedError.*max_partition_share=0\.1"):
        run(HudiExpirePartitionsOperator, table, policies=KEEP_TWO, guards={"max_partition_share": "0.1"})


def test_a_plan_that_a_guard_refuses_is_kept_and_fails_the_planner(table: TableBuilder) -> None:
    """The figures and the setting are in the error; the plan lies where the result says, for who looks into it."""
    ti = FakeTaskInstance()
    with pytest.raises(AirflowFailException, match=r"1 of 3 partitions \(33\.3%\), above max_partition_share=0\.1"):
        run(
            HudiPlanExpiryOperator,
            table,
            given=context(ti=ti),
            policies=KEEP_TWO,
            guards={"max_partition_share": "0.1"},
        )
    kept = ti.pushed["return_value"]
    assert 1 == kept["expired"] == json.loads(Path(kept["plan_path"]).read_text())["summary"]["expired"]


def test_a_planner_that_only_warns_leaves_the_guards_to_who_applies_the_plan(
    table: TableBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in the task group, whose next task checks them."""
    tight = {"max_partition_share": "0.1"}
    plan = run(HudiPlanExpiryOperator, table, policies=KEEP_TWO, guards=tight, on_guard="warn")
    assert "above max_partition_share=0.1" in capsys.readouterr().out
    with pytest.raises(AirflowFailException, match=r"GuardTrippedError.*max_partition_share=0\.1"):
        run(HudiExpirePartitionsOperator, table, plan_path=plan, guards=tight)
    with pytest.raises(AirflowFailException, match="on_guard='ignore' is unknown; expected fail or warn"):
        run(HudiPlanExpiryOperator, table, policies=KEEP_TWO, on_guard="ignore")


def test_a_live_writer_is_left_to_the_retries(table: TableBuilder) -> None:
    """It will be gone some time, so the error is not turned into a final one."""
    table.pending(at=datetime.now(UTC) - timedelta(seconds=1))
    with pytest.raises(PendingActionError):
        run(HudiExpirePartitionsOperator, table, policies=KEEP_TWO)


def test_clustering_with_nothing_to_do_skips_itself(table: TableBuilder) -> None:
    """Each partition has one file: there is nothing to merge, to execute or to compact."""
    for cls in (HudiScheduleClusteringOperator, HudiCompactSmallFilesOperator):
        reason, pushed = skipped(cls, table, target_file_bytes="10000", small_file_bytes="5000", max_group_bytes=20000)
        assert pushed["outcome"] == "nothing-to-do"
        assert reason == pushed["message"]
    for nothing in (None, "", [], {"instants": []}, '{"instants": []}'):
        assert skipped(HudiExecuteClusteringOperator, table, instants=nothing)[1]["instants"] == []


def test_the_report_takes_results_and_leaves_out_what_is_missing(table: TableBuilder) -> None:
    """Tasks that were skipped or failed have no result."""
    before = run(HudiGatherStatisticsOperator, table)
    plan = run(HudiPlanExpiryOperator, table, policies=KEEP_TWO)
    expired = run(HudiExpirePartitionsOperator, table, plan_path=plan["plan_path"], plan_only=True)
    operator = HudiReportOperator(
        task_id="report",
        hudi_conn_id=None,
        base_path=table.base_path,
        title="Trips of the week",
        before_statistics=before,
        step_reports=[expired, None, json.dumps(expired)],
        expiry_plan=plan,
        clustering_plan=None,
    )
    result = operator.execute(context())
    assert "Trips of the week" in Path(result["report_path"]).read_text()
    assert operator.report_path == result["report_path"]


def test_the_report_hands_on_a_picture_and_a_mail(table: TableBuilder) -> None:
    """The mail is no part of the result, which asset events and the log carry as well."""
    ti = FakeTaskInstance()
    result = run(HudiReportOperator, table, given=context(ti=ti))
    assert Path(result["picture_path"]).read_bytes().startswith(b"\x89PNG")
    assert result["report_path"] in ti.pushed["mail"]
    assert set(result) == {"report_path", "picture_path", "summary"}
    assert run(HudiReportOperator, table, picture="false")["picture_path"] is None


def test_a_report_is_written_though_the_arguments_of_the_forecast_are_broken(table: TableBuilder) -> None:
    """The run that failed by them wants its report."""
    for arguments in ({"policies": [{"policy": "KEEP_FOREVER"}]}, {"guards": {"no_such_limit": 1}}):
        page = Path(run(HudiReportOperator, table, picture=False, **arguments)["report_path"]).read_text()
        assert 'id="expiry"' not in page
    by = {"policies": KEEP_TWO, "guards": {"clock": "wall"}}
    assert 'id="expiry"' in Path(run(HudiReportOperator, table, picture=False, **by)["report_path"]).read_text()


def test_an_outlet_gets_the_result(table: TableBuilder) -> None:
    """The asset event carries what the task returns."""
    asset, event = Asset("trips_statistics"), FakeEvent()
    result = run(HudiGatherStatisticsOperator, table, outlets=[asset], given=context(outlet_events={asset: event}))
    assert event.extra == result
