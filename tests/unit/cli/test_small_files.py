"""``airflow hudi small-files``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.airflow.marks import AIRFLOW
from tests.unit.cli.running import Run

pytestmark = AIRFLOW

Golden = Callable[[str], Path]


def test_the_findings_are_printed_with_their_cures(run: Run, golden: Golden) -> None:
    answer = run(f"small-files {golden('v9_cow_plain')}")
    assert answer.code == 0
    assert "9 of 9 files below 100 MiB, 5 wasted opens" in answer.out
    assert "cure: hoodie.parquet.small.file.limit=104857600" in answer.out
    assert "no-small-file-handling (likely)" in answer.out


def test_documents_have_raw_figures_and_are_stored_only_when_asked_for(run: Run, golden: Golden) -> None:
    table = golden("v9_mor_plain")
    found = run(f"small-files {table} -o json").json
    assert (found["kind"], found["diagnosis_path"]) == ("small-file-diagnosis", None)
    assert not (table / ".hoodie/.airflow_hudi_maint/diagnoses").exists()
    written = run(f"small-files {table} -o json --write").json
    assert Path(written["diagnosis_path"]).exists()


def test_partitions_are_a_row_each_for_other_programs(run: Run, golden: Golden) -> None:
    answer = run(f"small-files {golden('v9_cow_plain')} -o plain --limit 1")
    assert answer.out.splitlines()[0].split() == [
        "partition", "files", "small_files", "bytes", "small_bytes", "wasted_opens", "causes",
    ]  # fmt: skip
    assert len(answer.out.splitlines()) == 2


def test_an_insert_is_foretold(run: Run, golden: Golden) -> None:
    """Under a tiny limit the small files are filled, and the rest is new."""
    options = '\'{"hoodie.parquet.max.file.size": 20000, "hoodie.copyonwrite.record.size.estimate": 100}\''
    table = golden("v9_cow_plain")
    line = f"small-files {table} --partition day=2026-11-01 --predict-inserts 1000 --writer-options {options}"
    predicted = run(f"{line} -o json").json
    assert predicted["average_record"] == {"bytes": 100, "rule": "newest-of-recent", "instants": []}
    assert len(predicted["grown"]) == 3
    assert sum(one["records"] for one in (*predicted["grown"], *predicted["new"])) == 1000
    assert "3 grow" in run(line).out


def test_a_prediction_needs_its_partition(run: Run, golden: Golden) -> None:
    answer = run(f"small-files {golden('v9_cow_plain')} --predict-inserts 10")
    assert answer.code != 0
    assert "needs one --partition" in answer.err
