"""What the demo shows of the programs that it starts, and how it ends them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from demo.airflow_run import TaskLines, make_environment
from demo.processes import DemoError, run_shown

OURS = "airflow.task.operators.airflow_hudi_maint.operators.expiry.HudiPlanExpiryOperator"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_every_line_goes_to_the_log_and_the_chosen_ones_to_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    run_shown(
        python("print('> seen'); print('noise')"), log=log, show=lambda line: line[2:] if line[0] == ">" else None
    )
    assert log.read_text(encoding="utf-8") == "> seen\nnoise\n"
    assert capsys.readouterr().out == "seen\n"


def test_a_command_that_fails_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    with pytest.raises(DemoError, match="exit code 3") as raised:
        run_shown(python("import sys; print('the reason'); sys.exit(3)"), log=tmp_path / "log", show=lambda _: None)
    assert "the reason" in str(raised.value)


def test_a_command_is_ended_with_its_children_when_its_output_shows_a_failure(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    child = f"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()"
    start = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])"
    parent = f"{start}; print('!', flush=True); import time; time.sleep(60)"

    def stop(line: str) -> str | None:
        raise DemoError(line)

    with pytest.raises(DemoError, match="!"):
        run_shown(python(parent), log=tmp_path / "log", show=stop)
    time.sleep(2.5)
    assert not mark.exists()


def entry(event: str, *, logger: str = OURS, level: str = "info", **more: object) -> str:
    return json.dumps({"event": event, "logger": logger, "level": level, **more})


def test_of_airflows_log_the_tasks_and_what_our_operators_say_are_shown() -> None:
    show = TaskLines()
    lines = [
        entry("Filling up the DagBag", logger="airflow.dag_processing"),
        "not JSON at all",
        entry("[DAG TEST] starting task_id=plan_expiry map_index=-1", logger="airflow.sdk.definitions.dag"),
        entry("::group::Plan expiry"),
        entry("Expiry plan on 20261130: 5 of 36 partitions expire"),
        entry("::endgroup::"),
        entry("expired: 5"),
        entry("No tasks to run. unrunnable tasks: {…}", logger="airflow.sdk.definitions.dag", level="warning"),
    ]
    assert [text for text in map(show, lines) if text is not None] == [
        "  plan_expiry",
        "    Expiry plan on 20261130: 5 of 36 partitions expire",
    ]


def test_a_failed_task_stops_the_demo_with_its_cause() -> None:
    chain = [{"exc_type": "PlanOutdatedError", "exc_value": "the table changed"}]
    with pytest.raises(DemoError, match="A task failed: PlanOutdatedError: the table changed"):
        TaskLines()(entry("Task failed with exception", level="error", exception=chain))


def test_the_airflow_of_the_demo_takes_no_setting_from_the_one_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    monkeypatch.setenv("AIRFLOW_HUDI_MAINT_CACHE", "/cache")
    env = make_environment(home=tmp_path, dags=tmp_path / "dags", connection={"conn_type": "hudi", "host": "/lake/t"})
    assert "AIRFLOW__CORE__EXECUTOR" not in env
    assert env["AIRFLOW_HUDI_MAINT_CACHE"] == "/cache"
    assert env["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == f"sqlite:///{tmp_path}/airflow.db"
    assert json.loads(env["AIRFLOW_CONN_HUDI_DEMO"]) == {"conn_type": "hudi", "host": "/lake/t"}
