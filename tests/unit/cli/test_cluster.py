"""``airflow hudi cluster``: what its flags mean, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.cli.commands import cluster as command
from airflow_hudi_maint.core.model.job import JobKind
from airflow_hudi_maint.hooks.hudi import HudiHook
from tests.airflow.marks import AIRFLOW
from tests.unit.cli.running import Run
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.merge_on_read import FIRST, SECOND, plan_clustering, plan_compaction, two_days
from tests.unit.core.maintenance.six_days import DAYS, six_days
from tests.unit.core.storage.builders import TableBuilder, at

pytestmark = AIRFLOW

SMALL = (
    "hoodie.clustering.plan.strategy.small.file.limit=65536\n"
    "hoodie.clustering.plan.strategy.target.file.max.bytes=1048576\n"
    "hoodie.clustering.plan.strategy.max.bytes.per.group=2097152\n"
)


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return six_days(tmp_path)


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[FakeEngine, Any]]:
    """The engines that were made, each with the settings it was made with."""
    made: list[tuple[FakeEngine, Any]] = []

    def make(hook: HudiHook) -> FakeEngine:
        made.append((FakeEngine(), hook.settings))
        return made[-1][0]

    monkeypatch.setattr(HudiHook, "make_engine", make)
    return made


def test_without_a_mode_the_earliest_pending_clustering_is_executed(
    run: Run, tmp_path: Path, engines: list[tuple[FakeEngine, Any]]
) -> None:
    """Whoever made it, as Hudi's job does; the memory that is asked for reaches the engine."""
    table = two_days(tmp_path)
    plan_compaction(table, at(29), days=[SECOND])
    plan_clustering(table, at(30), day=FIRST)
    plan_clustering(table, at(31), day=SECOND)
    answer = run(f"cluster --base-path {table.base_path} --table-name trips --spark-memory 3g")
    ((engine, settings),) = engines
    assert [(one.kind, one.arguments["instants"]) for one in engine.requests] == [
        (JobKind.EXECUTE_CLUSTERING, [at(30)])
    ]
    assert settings.driver_memory == "3g"
    assert (answer.code, "shows no completion" in answer.err) == (75, True), "the fake completed nothing"
    run(f"cluster -sp {table.base_path} -tn trips -it {at(31)} -sm 1g")
    assert engines[-1][0].requests[0].arguments["instants"] == [at(31)]


@pytest.mark.parametrize("how", ["", "--mode scheduleAndExecute -rc"])
def test_an_execution_takes_layout_and_target_of_the_properties_and_the_plan_s_columns(
    run: Run, tmp_path: Path, engines: list[tuple[FakeEngine, Any]], how: str
) -> None:
    """Hudi keeps neither layout nor target in its plan, and reads both from the properties of whoever executes."""
    table = two_days(tmp_path)
    strategy = "hoodie.clustering.plan.strategy"
    plan_clustering(table, at(30), day=FIRST, parameters={f"{strategy}.sort.columns": "fare"})
    table.put(f"{table.timeline_folder}/{at(30)}.clustering.inflight", b"") if how else None
    props = tmp_path / "job.properties"
    props.write_text(
        f"{SMALL}hoodie.layout.optimize.strategy=Z-ORDER\n{strategy}.sort.columns=city\n"
        "hoodie.clustering.max.parallelism=3\n",
        encoding="utf-8",
    )
    answer = run(f"cluster --base-path {table.base_path} --props {props} {how}")
    ((engine, _),) = engines
    (request,) = engine.requests
    (options,) = request.arguments["options_of"].values()  # type: ignore[union-attr]
    assert {
        "hoodie.layout.optimize.strategy": "ZORDER",
        f"{strategy}.sort.columns": "fare",
        f"{strategy}.target.file.max.bytes": "1048576",
    }.items() <= options.items()  # type: ignore[union-attr]
    assert request.write_options["hoodie.clustering.max.parallelism"] == "3"
    assert f"clustering plan {at(30)} sorts by fare, as it was scheduled; the sort columns city count" in answer.err


def test_nothing_pending_is_no_error(run: Run, table: TableBuilder, engines: list[Any]) -> None:
    """A script that branches on it asks for the exit code."""
    answer = run(f"cluster --base-path {table.base_path} -o json")
    assert (answer.code, answer.json["outcome"], engines) == (0, "nothing-to-do", [])
    assert run(f"cluster --base-path {table.base_path} --exit-code").code == 3


def test_scheduling_takes_hudi_s_properties_and_goes_by_them(
    run: Run, table: TableBuilder, tmp_path: Path, engines: list[Any]
) -> None:
    """What stands in --hoodie-conf goes over the file; a limit that nothing reaches schedules nothing."""
    props = tmp_path / "job.properties"
    props.write_text(f"# of the nightly job\n{SMALL}", encoding="utf-8")
    line = f"cluster {table.base_path} -tn trips --schedule --props {props} --partition {DAYS[0]} -o json"
    none = run(f"{line} --hoodie-conf hoodie.clustering.plan.strategy.small.file.limit=50 --instant-time {at(31)}")
    assert (none.code, none.json["outcome"]) == (0, "nothing-to-do")
    assert "--instant-time counts with --mode execute only" in none.err
    assert engines == []
    scheduled = run(line)
    assert (scheduled.code, scheduled.json["outcome"]) == (0, "done"), scheduled.err
    assert scheduled.json["partitions"] == [DAYS[0]]


def test_a_clustering_that_died_is_executed_again_only_when_it_is_old_enough(
    run: Run, tmp_path: Path, engines: list[Any]
) -> None:
    """Hudi's --retry-last-failed-clustering-job, with our checks for signs of life."""
    table = two_days(tmp_path)
    plan_clustering(table, at(30), day=FIRST)
    table.put(f"{table.timeline_folder}/{at(30)}.clustering.inflight", b"")
    line = f"cluster -sp {table.base_path} --mode scheduleandexecute -rc"
    young = run(f"{line} -jt 3600000")
    assert (young.code, "last sign of life" in young.err, engines) == (75, True, [])
    run(line)
    assert [one.kind for one in engines[0][0].requests] == [JobKind.EXECUTE_CLUSTERING]


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        ("--table-name other", 1, "is not the name of the table"),
        ("/lake/other", 2, "Two tables"),
        ("--mode vacuum", 2, "--mode vacuum is unknown"),
        ("--hoodie-conf nonsense", 2, "is no key=value"),
        ("--hoodie-conf hoodie.clustering.plan.strategy.small.file.limit=big", 1, "--hoodie-conf"),
        ("--props /nowhere/job.properties", 1, "/nowhere/job.properties"),
        ("--instant-time 20200101000000000", 1, "no pending clustering"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    run: Run, table: TableBuilder, engines: list[Any], flags: str, code: int, words: str
) -> None:
    """Before any engine is made."""
    answer = run(f"cluster --base-path {table.base_path} {flags}")
    assert (answer.code, words in answer.err, answer.err.count("\n")) == (code, True, 1)
    assert engines == []


def test_a_table_has_to_be_named(run: Run) -> None:
    """By its path or by a connection."""
    answer = run("cluster --schedule")
    assert (answer.code, "--base-path" in answer.err) == (2, True)
    assert command.SCHEDULE == "schedule"
