"""``airflow hudi merge``."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.airflow.marks import AIRFLOW
from tests.unit.cli.running import Run

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


@pytest.mark.parametrize("wrong", ["--setting trash_days", "--undo last --dry-run", "--format avro"])
def test_wrong_arguments_are_a_matter_of_usage(run: Run, landing: Path, wrong: str) -> None:
    assert run(f"merge {landing} {wrong}").code == 2


def test_an_unknown_setting_is_named_with_the_one_that_is_near(run: Run, landing: Path) -> None:
    answer = run(f"merge {landing} --setting trash_day=1")
    assert answer.code == 1
    assert "trash_days" in answer.err
