"""The health operator on tables that need no engine."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.sdk.observability import stats

from airflow_hudi_maint.operators.health import HudiTableHealthOperator
from airflow_hudi_maint.operators.statistics import HudiGatherStatisticsOperator
from tests.airflow.fakes import FakeEvent, FakeTaskInstance, context
from tests.airflow.tables import TableBuilder, three_days


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days(str(tmp_path / "trips"))


@pytest.fixture
def sick(table: TableBuilder) -> TableBuilder:
    """A write that died two days ago, and a rollback that waits for two hours."""
    table.pending(at=datetime.now(UTC) - timedelta(days=2))
    table.pending(at=datetime.now(UTC) - timedelta(hours=2), action="rollback")
    return table


def run(table: TableBuilder, *, given: Any = None, **arguments: Any) -> dict[str, Any]:
    operator = HudiTableHealthOperator(
        **{"task_id": "step", "hudi_conn_id": None, "base_path": table.base_path, **arguments}
    )
    result: dict[str, Any] = operator.execute(given or context())
    assert json.loads(json.dumps(result)) == result, "results are JSON-native"
    return result


def test_a_healthy_table_passes_with_every_value(table: TableBuilder) -> None:
    """The document is where the result says."""
    result = run(table)
    assert (result["severity"], result["findings"]) == ("ok", [])
    assert (result["ok"], result["unknown"], result["warning"], result["critical"]) == (len(result["values"]), 0, 0, 0)
    assert result["values"]["active_instants"] == 3
    assert result["values"]["last_clean_seconds"] is None
    assert json.loads(Path(result["health_path"]).read_text())["severity"] == "ok"


def test_a_critical_signal_fails_without_a_retry_after_all_is_handed_on(sick: TableBuilder) -> None:
    """The tasks after it want to know what it saw."""
    ti = FakeTaskInstance()
    with pytest.raises(AirflowFailException, match=r"UnhealthyTableError.*pending_write_seconds is critical"):
        run(sick, given=context(ti=ti))
    result = ti.pushed["return_value"]
    assert result["findings"] == ["pending_write_seconds", "pending_rollback_seconds"]
    assert Path(result["health_path"]).exists()


def test_a_warning_below_the_limit_is_logged_and_passes(
    table: TableBuilder, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its advice."""
    table.pending(at=datetime.now(UTC) - timedelta(hours=2), action="rollback")
    result = run(table)
    assert (result["severity"], result["warning"]) == ("warning", 1)
    assert "pending_rollback_seconds is warning" in capsys.readouterr().out


@pytest.mark.parametrize("fail_on", ["warning", " WARNING "])
def test_warnings_fail_when_they_are_asked_to(fail_on: str, table: TableBuilder) -> None:
    """In any case of letters, as templates bring them."""
    table.pending(at=datetime.now(UTC) - timedelta(hours=2), action="rollback")
    with pytest.raises(AirflowFailException, match="pending_rollback_seconds is warning"):
        run(table, fail_on=fail_on)


def test_never_fails_on_never(sick: TableBuilder) -> None:
    """Metrics and the document only."""
    assert run(sick, fail_on="never")["severity"] == "critical"


@pytest.mark.parametrize("fail_on", ["ok", "error", "none of them"])
def test_an_unknown_severity_is_refused(fail_on: str, table: TableBuilder) -> None:
    """Before anything is read."""
    with pytest.raises(AirflowFailException, match="expected one of critical, warning, never"):
        run(table, fail_on=fail_on)


@pytest.mark.parametrize(
    "thresholds", [{"pending_write_seconds": None}, '{"pending_write_seconds": {"critical": 1e9}}']
)
def test_thresholds_come_as_an_object_or_its_text(thresholds: Any, sick: TableBuilder) -> None:
    """From a template."""
    assert run(sick, thresholds=thresholds)["critical"] == 0


def test_a_typing_error_in_thresholds_fails_with_the_name(table: TableBuilder) -> None:
    """Not an alarm that never comes."""
    with pytest.raises(AirflowFailException, match="did you mean pending_write_seconds"):
        run(table, thresholds={"pending_writes_seconds": None})


def test_statistics_of_an_earlier_task_are_taken(table: TableBuilder) -> None:
    """Its result, or the path in it; with a limit of one byte no file is small."""
    gather = HudiGatherStatisticsOperator(
        task_id="gather", hudi_conn_id=None, base_path=table.base_path, small_file_bytes=1
    )
    gathered = gather.execute(context())
    for given in (gathered, json.dumps(gathered), gathered["statistics_path"]):
        assert run(table, statistics=given)["values"]["small_file_ratio"] == 0


def test_metrics_carry_table_dag_and_task(sick: TableBuilder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a task that fails; none when they are switched off."""
    seen: list[tuple[str, float, Any]] = []
    monkeypatch.setattr(stats, "gauge", lambda name, value, *, tags: seen.append((name, value, tags)))
    with pytest.raises(AirflowFailException):
        run(sick)
    tags = {"table": "trips", "dag_id": "maintain", "task_id": "step"}
    assert ("hudi_maint.table_health.severity", 3, tags) in seen
    assert ("hudi_maint.table_health.trips.active_instants", 3, tags) in seen
    seen.clear()
    run(sick, fail_on="never", emit_metrics="no")
    assert seen == []


def test_the_outlet_learns_what_was_found(table: TableBuilder) -> None:
    """As the other operators do."""
    asset, event = Asset("hudi://trips"), FakeEvent()
    result = run(table, given=context(outlet_events={asset: event}), outlets=[asset])
    assert event.extra == result


def test_a_check_that_is_switched_off_skips(tmp_path: Path) -> None:
    """There is not even a table."""
    with pytest.raises(AirflowSkipException, match="switched off"):
        run(TableBuilder(base_path=str(tmp_path / "nothing")), enabled=False)


def test_a_path_without_a_table_fails_without_a_retry(tmp_path: Path) -> None:
    """Trying again cannot help."""
    with pytest.raises(AirflowFailException, match="TableNotFoundError"):
        run(TableBuilder(base_path=str(tmp_path / "nothing")))


def test_every_template_field_is_an_argument_and_an_attribute() -> None:
    """Mapping a task over a field and rendering it need both."""
    operator = HudiTableHealthOperator(task_id="step")
    assert [name for name in operator.template_fields if not hasattr(operator, name)] == []
    HudiTableHealthOperator(task_id="step", **dict.fromkeys(operator.template_fields))
