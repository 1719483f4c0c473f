"""``airflow hudi merge``."""

from __future__ import annotations

import inspect
import os
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.cli.merge_arguments import MERGE_ARGS
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.merge import MergeSmallFilesOperator
from tests.airflow.marks import AIRFLOW
from tests.unit.cli.running import Run
from tests.unit.core.maintenance.test_merging_on_spark import TaskEngine

pytestmark = AIRFLOW


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """Four CSV files with a header, an hour old."""
    root = tmp_path / "landing"
    root.mkdir()
    for number in range(4):
        file = root / f"{number}.csv"
        file.write_text(f"name,count\nitem {number},{number}\n")
        os.utime(file, (time.time() - 3600,) * 2)
    return root


def test_a_dry_run_prints_what_would_become_of_the_files(run: Run, landing: Path) -> None:
    (landing / "notes.txt").write_text("x")
    answer = run(f"merge {landing} --dry-run -o plain")
    assert answer.code == 0
    assert "header" in answer.out
    assert "left alone" in answer.out
    assert len(list(landing.glob("*.csv"))) == 4


def test_a_merge_and_its_undo(run: Run, landing: Path) -> None:
    merged = run(f"merge {landing} -o json").json
    assert (merged["files_before"], merged["files_after"]) == (4, 1)
    [file] = landing.glob("*.csv")
    assert file.read_text().splitlines() == ["name,count", *(f"item {number},{number}" for number in range(4))]
    undone = run(f"merge {landing} --undo {merged['run']} -o json").json
    assert undone["action"] == "undo"
    assert len(list(landing.glob("*.csv"))) == 4


def test_a_second_run_ends_with_3_when_asked(run: Run, landing: Path) -> None:
    run(f"merge {landing}")
    assert run(f"merge {landing} --exit-code").code == 3


@pytest.mark.parametrize(
    "wrong",
    [
        "--setting trash_days",
        "--undo last --dry-run",
        "--undo last --setting trash_days=1",
        "--undo last --engine spark",
        "--undo last --plan-path x.json",
        "--format avro",
        "--engine flink",
        "--hudi-conn-id lake",
        "--job-timeout 60",
    ],
)
def test_wrong_arguments_are_a_matter_of_usage(run: Run, landing: Path, wrong: str) -> None:
    assert run(f"merge {landing} {wrong}").code == 2


def test_an_unknown_setting_is_named_with_the_one_that_is_near(run: Run, landing: Path) -> None:
    answer = run(f"merge {landing} --setting trash_day=1")
    assert answer.code == 1
    assert "trash_days" in answer.err


def test_an_undo_tells_what_an_undo_does(run: Run, landing: Path) -> None:
    """Not the figures of a merge, which would all be 0."""
    merged = run(f"merge {landing}")
    [said] = [line.partition("|")[2] for line in merged.out.splitlines() if line.startswith("undo")]
    command, _, kept = said.strip().removeprefix("airflow hudi ").partition(", ")
    answer = run(command)
    assert kept == "for 7 days"
    assert "4 files are back, and 1 merged file deleted" in answer.out
    assert "files_before" not in answer.out


def test_the_plan_of_a_dry_run_is_carried_out_as_it_is(
    run: Run, landing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its path, also a relative one, or by one below the directory's documents."""
    planned = run(f"merge {landing} --dry-run --target-file-bytes 45 --small-file-bytes 45 -o json").json
    assert planned["plan_path"].startswith(str(landing))
    monkeypatch.chdir(landing)
    relative = Path(planned["plan_path"]).relative_to(landing)
    refused = run(f"merge {landing} --plan-path {relative} --target-file-bytes 60 --setting trash_days=1")
    assert (refused.code, "leave out --target-file-bytes, --setting" in refused.err) == (2, True)
    merged = run(f"merge . --plan-path {relative} -o json").json
    assert (merged["files_before"], merged["files_after"]) == (4, 2)
    run("merge . --undo last")
    again = run(f"merge . --plan-path plans/{relative.name} -o json").json
    assert (again["files_before"], again["files_after"]) == (4, 2)


def test_a_plan_is_undone_as_a_whole(run: Run, landing: Path) -> None:
    plan = run(f"merge {landing} --dry-run -o json").json["plan_path"]
    run(f"merge {landing} --plan-path {plan}")
    (row,) = run(f"merge {landing} --undo {plan} -o json").json
    assert (row["root"], row["action"]) == (str(landing), "undo")
    assert len(list(landing.glob("*.csv"))) == 4


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TaskEngine, HudiHook]]:
    """The engines that were made, each with the hook that made it."""
    made: list[tuple[TaskEngine, HudiHook]] = []

    def make(hook: HudiHook, workspace: Any) -> TaskEngine:
        made.append((TaskEngine(), hook))
        return made[-1][0]

    monkeypatch.setattr(HudiHook, "make_engine_for_files", make)
    return made


def test_with_the_engine_spark_one_job_writes_the_files(
    run: Run, landing: Path, engines: list[tuple[TaskEngine, HudiHook]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dry run and a run with nothing to do make no engine."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_HERE", '{"conn_type": "hudi", "extra": {"master": "local[3]"}}')
    assert run(f"merge {landing} --engine spark --dry-run").code == 0
    assert engines == []
    merged = run(f"merge {landing} --engine spark --hudi-conn-id spark_here --job-timeout 60 -o json").json
    assert (merged["outcome"], merged["files_before"], merged["files_after"]) == ("done", 4, 1)
    ((engine, hook),) = engines
    assert (len(engine.requests), hook.settings.master) == (1, "local[3]")
    assert run(f"merge {landing} --engine spark --exit-code").code == 3
    assert len(engines) == 1


def test_credentials_come_from_a_connection(run: Run, landing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", '{"conn_type": "aws", "login": "key", "password": "secret"}')
    answer = run(f"merge {landing} --storage-conn-id lake")
    assert (answer.code, "lake" in answer.err, "s3" in answer.err) == (1, True, True)


def test_the_names_and_defaults_are_those_of_the_operator() -> None:
    operator = inspect.signature(MergeSmallFilesOperator.__init__).parameters
    ours = {flag.flags[0].removeprefix("--").replace("-", "_"): flag for flag in MERGE_ARGS}
    for name in ("engine", "hudi_conn_id", "plan_path", "target_file_bytes", "small_file_bytes", "min_age_seconds"):
        assert operator[name].default == ours[name].kwargs.get("default")
    assert {"storage_conn_id", "job_timeout", "storage_options"} <= set(ours)
