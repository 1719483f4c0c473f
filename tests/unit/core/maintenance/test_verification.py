"""What is verified after a clustering: real files that Hudi wrote pass, and each wrong output is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import VerificationError
from airflow_hudi_maint.core.maintenance import JobControl, Workspace
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.report import Outcome, StepReport
from airflow_hudi_maint.core.model.verification import Verdict, Verification, VerifyMode, VerifySettings
from tests.golden.golden import unpack

NOW = datetime(2026, 12, 1, tzinfo=UTC)
BY_KEYS = VerifySettings(keys=True)
ALL_CHECKS = {
    "commit",
    "replaced groups",
    "record count",
    "null counts",
    "schema",
    "record keys",
    "file sizes",
    "metadata partitions",
}


def _no_engine() -> None:
    pytest.fail("verifying started Spark")


def _workspace(path: Path) -> Workspace:
    return maintenance.open_workspace(str(path), engine=_no_engine)  # type: ignore[arg-type]


def _clustering(path: Path) -> str:
    """The instant of the table's only completed clustering."""
    table = _workspace(path).table
    done = [one for one in table.timeline().completed if one.action is Action.REPLACE_COMMIT]
    (found,) = (
        one.requested_time
        for one, commit in zip(done, table.commit_metadata_of(done), strict=True)
        if commit.operation == "CLUSTER"
    )
    return found


def _verify(path: Path, settings: VerifySettings = BY_KEYS) -> Verification:
    reported = maintenance.execute_clustering(
        _workspace(path), now=NOW, job=JobControl(), instants=[_clustering(path)], verify=settings
    )
    (verification,) = reported.report.verification
    return verification


def _verdicts(verification: Verification) -> dict[str, Verdict]:
    return {one.name: one.verdict for one in verification.checks}


def _said(verification: Verification, name: str) -> str:
    return next(one.message for one in verification.checks if one.name == name)


@pytest.fixture
def clustered(tmp_path: Path) -> Path:
    return unpack("v9_cow_clustered", tmp_path)


def _output(path: Path) -> Path:
    (file,) = path.glob(f"*/*_{_clustering(path)}.parquet")
    return file


def _rewrite(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    file = _output(path)
    pq.write_table(change(pq.read_table(file, partitioning=None)), file)


@pytest.mark.parametrize("name", ["v6_cow_clustered", "v8_cow_clustered", "v9_cow_clustered"])
def test_what_hudi_wrote_passes(name: str, tmp_path: Path) -> None:
    """Every check passes by the files alone, for an instant that completed before; only the settings were not seen."""
    verification = _verify(unpack(name, tmp_path))

    expected = dict.fromkeys(ALL_CHECKS, Verdict.PASSED) | {"metadata partitions": Verdict.UNKNOWN}
    assert (VerifyMode.FULL, 4, 4) == (verification.mode, verification.files, verification.files_read)
    assert expected == _verdicts(verification)
    assert "9 rows went in and came out" == _said(verification, "record count")


@pytest.mark.parametrize("name", ["v6_mor_clustered", "v8_mor_clustered", "v9_mor_clustered"])
def test_what_only_log_files_tell_is_not_claimed(name: str, tmp_path: Path) -> None:
    """Rows of base files alone are not the rows that went in: counts, nulls and keys are unknown, the rest passes."""
    verification = _verify(unpack(name, tmp_path))

    unknown = {"record count", "null counts", "record keys", "metadata partitions"}
    assert unknown == {one.name for one in verification.of(Verdict.UNKNOWN)}
    assert not verification.failed
    assert "log files among its inputs" in _said(verification, "record count")


def _without_a_row(table: pa.Table) -> pa.Table:
    return table.slice(1)


def _with_a_null(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("fare")
    values = table.column(at).to_pylist()
    return table.set_column(at, "fare", pa.array([None, *values[1:]], table.schema.field(at).type))


def _with_another_type(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("fare")
    return table.set_column(at, "fare", pc.cast(table.column(at), pa.int32(), safe=False))


def _with_a_key_twice(table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("_hoodie_record_key")
    keys = table.column(at).to_pylist()
    return table.set_column(at, table.schema.field(at), pa.array([keys[1], *keys[1:]]))


@pytest.mark.parametrize(
    ("change", "check", "words"),
    [
        (_without_a_row, "record count", r"had 9 rows and has 8 \(1 fewer\)"),
        (_with_a_null, "null counts", r"fare of partition .* had 0 rows without a value and has 1 \(1 more\)"),
        (_with_another_type, "schema", "column fare was double and is int"),
        (lambda table: table.drop_columns(["fare"]), "schema", r"column fare \(double\) is missing"),
        (lambda table: table.append_column("extra", pa.array([1] * len(table))), "schema", "column extra is new"),
        (_with_a_key_twice, "record keys", "keys of partition .* are others than before"),
    ],
    ids=["row lost", "value lost", "other type", "column lost", "column more", "key twice"],
)
def test_a_wrong_output_fails_loudly(
    clustered: Path, change: Callable[[pa.Table], pa.Table], check: str, words: str
) -> None:
    """The error names the check with its figures, the instant, the way back and the report, which has the evidence."""
    instant = _clustering(clustered)
    _rewrite(clustered, change)

    with pytest.raises(VerificationError, match=words) as failure:
        _verify(clustered)

    message = str(failure.value)
    assert all(text in message for text in (check, instant, "rollback_to_savepoint", "cleaner"))
    path = message.rpartition("Evidence: ")[2]
    report = StepReport.from_json(json.loads(Path(path).read_text(encoding="utf-8")), name=path)
    assert (Outcome.FAILED, instant) == (report.outcome, report.verification[0].instant)
    assert check in {one.name for one in report.verification[0].failed}


def test_keys_are_read_only_when_asked(clustered: Path) -> None:
    """Without it a key that stands there twice goes unseen: the other checks say nothing of which rows there are."""
    _rewrite(clustered, _with_a_key_twice)

    assert "record keys" not in _verdicts(_verify(clustered, VerifySettings()))


def test_an_output_that_is_not_there_fails(clustered: Path) -> None:
    """No clean has passed, so nobody may have taken it."""
    _output(clustered).unlink()

    with pytest.raises(VerificationError, match=r"1 file that the commit wrote, such as .* no clean has passed since"):
        _verify(clustered)


def _clean(path: Path, instant: str) -> None:
    """A completed clean; its time of completion is right after."""
    for state in (".requested", ".inflight", ""):
        name = f"{instant}.clean{state}" if state else f"{instant}_{int(instant) + 1}.clean"
        (path / ".hoodie" / "timeline" / name).write_bytes(b"")


def test_a_clean_right_after_does_not_excuse_an_output_that_is_gone(clustered: Path) -> None:
    """Tables that clean after each commit have one after every clustering, and it takes only what was replaced."""
    instant = _clustering(clustered)
    for file in (clustered / ".hoodie" / "timeline").glob("2*"):
        if file.name[:17] > instant:
            file.unlink()
    _clean(clustered, str(int(instant) + 10_000))
    _output(clustered).unlink()

    with pytest.raises(VerificationError, match=r"no write has completed since that a clean could have passed for"):
        _verify(clustered)


def test_an_output_that_is_no_parquet_fails(clustered: Path) -> None:
    """A torn file is named."""
    _output(clustered).write_bytes(b"PAR1")

    with pytest.raises(VerificationError, match="is no Parquet file that can be read"):
        _verify(clustered)


def test_inputs_that_were_cleaned_leave_counts_unknown(clustered: Path) -> None:
    """A retry long after cannot compare with files that are gone, and says so."""
    for file in clustered.glob("*/*.parquet"):
        if file != _output(clustered) and file.parent == _output(clustered).parent:
            file.unlink()

    verification = _verify(clustered)

    assert not verification.failed
    assert "3 input files cleaned meanwhile" in _said(verification, "record count")
    assert {"record count", "null counts", "schema"} <= {one.name for one in verification.of(Verdict.UNKNOWN)}


def test_a_plan_that_is_no_longer_there_is_said(clustered: Path) -> None:
    """What the commit replaced cannot be held against anything."""
    (request,) = clustered.glob(f".hoodie/timeline/{_clustering(clustered)}.*.requested")
    request.unlink()

    verification = _verify(clustered)

    assert "no longer on the active timeline" in _said(verification, "replaced groups")
    assert not verification.failed


def test_a_group_that_was_not_replaced_fails(tmp_path: Path) -> None:
    """Its rows would be read twice: from the old file and from the new one."""
    table = unpack("v6_cow_clustered", tmp_path)
    (commit,) = table.glob(f".hoodie/{_clustering(table)}.replacecommit")
    content = json.loads(commit.read_text(encoding="utf-8"))
    (partition,) = content["partitionToReplaceFileIds"]
    content["partitionToReplaceFileIds"][partition].pop()
    commit.write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(VerificationError, match="1 file group of the plan not replaced"):
        _verify(table)


def test_by_the_timeline_alone_no_file_is_opened(clustered: Path) -> None:
    """Neither a lost row nor a broken file is seen then, which the report says."""
    _output(clustered).write_bytes(b"PAR1")

    verification = _verify(clustered, VerifySettings(mode=VerifyMode.TIMELINE))

    assert (0, VerifyMode.TIMELINE) == (verification.files_read, verification.mode)
    assert "verify=timeline reads no file" == _said(verification, "rows and columns")


def test_a_sample_that_fits_nothing_says_so(clustered: Path) -> None:
    """Four files are more than the three that may be read."""
    verification = _verify(clustered, VerifySettings(max_files=3))

    assert (0, VerifyMode.SAMPLE) == (verification.files_read, verification.mode)
    assert "no partition fits verify_files" == _said(verification, "rows and columns")
