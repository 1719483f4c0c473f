"""Merging the small files of a plain directory: what is merged, what is left alone and why, and how it is undone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from airflow_hudi_maint.core.errors import (
    DirectoryNotFoundError,
    SchemaConflictError,
    UnreadableFileError,
    UnsupportedTableError,
)
from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge, read_merge_plan, small_file_counts
from airflow_hudi_maint.core.maintenance.merge_workspace import open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import merge_small_files, undo_merge
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.report import Outcome
from tests.unit.core.maintenance.plain_files import NOW, SETTINGS, STATE, fill, merge, names, reasons, seen


def test_partition_directories_are_never_mixed(root: Path) -> None:
    workspace = fill(root, {f"day={day}/{name}.csv": f"{day},{name}\n".encode() for day in (1, 2) for name in "ab"})
    report = merge(workspace)

    assert [b"1,a\n1,b\n", b"2,a\n2,b\n"] == list(seen(root).values())
    assert ["day=1", "day=2"] == [path.rpartition("/")[0] for path in seen(root)]
    assert (Outcome.DONE, 4, 2, 16, 16) == (
        report.outcome,
        report.files_before,
        report.files_after,
        report.bytes_before,
        report.bytes_after,
    )


def test_formats_and_codecs_are_never_mixed(root: Path) -> None:
    import gzip

    files = {f"{name}.csv": b"1\n" for name in "ac"} | {f"{name}.csv.gz": gzip.compress(b"1\n") for name in "bd"}
    workspace = fill(root, files | {f"{name}.json": b"{}\n" for name in "ef"})
    merge(workspace)

    assert [".csv", ".csv.gz", ".json"] == sorted("." + path.split(".", 1)[1] for path in seen(root))


def test_orc_files_are_merged(root: Path) -> None:
    workspace = fill(root, {"x": b""})
    for number in range(3):
        orc.write_table(pa.table({"a": [number]}), root / f"{number}.orc")
    report = merge(workspace)

    (name,) = [path for path in seen(root) if path.endswith(".orc")]
    assert [0, 1, 2] == orc.read_table(root / name)["a"].to_pylist()
    assert (3, "stripe by stripe") == (report.groups[0].rows, report.groups[0].method)


def test_parquet_files_are_merged(root: Path) -> None:
    import pyarrow.parquet as pq

    workspace = fill(root, {"x": b""})
    for number in range(3):
        pq.write_table(pa.table({"a": [number]}), root / f"{number}.parquet")
    report = merge(workspace)

    (name,) = [path for path in seen(root) if path.endswith(".parquet")]
    assert [0, 1, 2] == pq.read_table(root / name)["a"].to_pylist()
    assert 3 == report.groups[0].rows


def test_markers_hidden_and_unknown_files_stay(root: Path) -> None:
    stay = {
        "_SUCCESS": b"",
        ".hidden.csv": b"1",
        "_tmp.csv": b"1",
        "README.md": b"x",
        "c.csv.tmp": b"1",
        "_t/a.csv": b"1",
    }
    workspace = fill(root, {**stay, "a.csv": b"1\n", "b.csv": b"2\n"})
    merge(workspace)

    assert stay.items() <= seen(root).items()
    assert len(stay) + 1 == len(seen(root))


def test_checksums_go_along_with_their_files_and_come_back(root: Path) -> None:
    """Hadoop would check the next file of that name against them."""
    workspace = fill(root, {"a.csv": b"1\n", ".a.csv.crc": b"crc", "b.csv": b"2\n", ".z.csv.crc": b"other"})
    before = seen(root)
    merge(workspace)

    assert [".z.csv.crc"] == [path for path in seen(root) if path.endswith(".crc")]
    undo_merge(workspace, now=NOW)
    assert before == seen(root)


def test_young_files_stay_until_they_are_old(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n", "c.csv": b"3\n"})
    written = datetime.fromtimestamp((root / "a.csv").stat().st_mtime, tz=UTC)
    os.utime(root / "c.csv", (written.timestamp() + 60, written.timestamp() + 60))
    settings = replace(SETTINGS, min_age_seconds=600)

    assert "may still grow" in reasons(workspace, settings, now=written + timedelta(seconds=599))["a.csv"]
    plan = plan_merge(workspace, now=written + timedelta(seconds=610), settings=settings).plan
    assert [["a.csv", "b.csv"]] == [[one.name for one in group.inputs] for group in plan.groups]


@pytest.mark.parametrize("change", ["grows", "is rewritten", "is deleted"])
def test_a_file_that_changes_between_plan_and_merge_keeps_its_group_as_it_is(root: Path, change: str) -> None:
    workspace = fill(root, {f"{day}/{name}.csv": b"1\n" for day in "de" for name in "ab"})
    planned = plan_merge(workspace, now=NOW, settings=SETTINGS)
    path = root / "d/b.csv"
    if change == "is deleted":
        path.unlink()
    else:
        path.write_bytes(b"1\n2\n" if change == "grows" else b"3\n")
    report = merge_small_files(workspace, now=NOW, plan_path=planned.path).report

    assert b"1\n" == seen(root)["d/a.csv"]
    assert 2 == report.files_before
    (warning,) = report.warnings
    assert f"{path} {'is gone' if change == 'is deleted' else 'changed'} since the plan was made" in warning


def test_a_file_that_grows_while_it_is_merged_keeps_its_group_as_it_is(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look comes after the merged file was written, and before anything is moved."""
    from airflow_hudi_maint.core.merging import verification

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    real = verification.verify_text

    def verify(*args: Any, **options: Any) -> None:
        real(*args, **options)
        with (root / "a.csv").open("ab") as file:
            file.write(b"9\n")

    monkeypatch.setattr(verification, "verify_text", verify)
    report = merge(workspace)

    assert {"a.csv": b"1\n9\n", "b.csv": b"2\n"} == seen(root)
    assert (0, 1) == (len(report.groups), len(report.warnings))
    assert [] == list((root / STATE / "staging").iterdir())


def test_links_are_not_followed(root: Path, tmp_path: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    (tmp_path / "outside").mkdir()
    for name in "xy":
        (tmp_path / f"outside/{name}.csv").write_bytes(b"9\n")
    (root / "c.csv").symlink_to(tmp_path / "outside/x.csv")
    (root / "day=9").symlink_to(tmp_path / "outside")
    assert "a symbolic link" in reasons(workspace)["c.csv"]
    merge(workspace)

    assert ["x.csv", "y.csv"] == sorted(names(tmp_path / "outside"))
    assert (root / "c.csv").is_symlink()


NAMES = ["with space", "100%", "city=S%C3%A3o", "Zürich", "日本", "a+b;c,(d)", "'q'", "x" * 120]


@pytest.mark.parametrize("name", NAMES)
def test_awkward_names_are_names(root: Path, name: str) -> None:
    workspace = fill(root, {f"k={name}/{name}-{part}.csv": part.encode() for part in "123"})
    before = seen(root)
    merge(workspace)

    assert [b"1\n2\n3"] == list(seen(root).values())
    undo_merge(workspace, now=NOW)
    assert before == seen(root)


def test_a_name_that_is_no_utf_8_is_a_name(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n"})
    Path(os.fsdecode(os.fsencode(root) + b"/\xff.csv")).write_bytes(b"2\n")
    report = merge(workspace)

    assert 2 == report.files_before
    assert [b"1\n2\n"] == list(seen(root).values())


def test_a_name_too_long_to_grow_stays(root: Path) -> None:
    """A disk takes 255 bytes."""
    workspace = fill(root, {f"{part}{'x' * 248}.csv": b"1\n" for part in "ab"})
    report = merge(workspace)

    assert 2 == len(seen(root))
    assert Outcome.NOTHING_TO_DO == report.outcome


TABLES = {
    "Hudi": (".hoodie/hoodie.properties", "HudiCompactSmallFilesOperator"),
    "Delta": ("_delta_log/00000000000000000000.json", "OPTIMIZE"),
    "Iceberg": ("metadata/v1.metadata.json", "rewrite_data_files"),
    "Paimon": ("schema/schema-0", "compact"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_refused_by_its_name(root: Path, name: str) -> None:
    """Itself, a directory within it, and, left alone, a directory that holds one."""
    marker, advice = TABLES[name]
    fill(root, {f"t/{marker}": b"", "t/snapshot/snapshot-1": b"", "t/d/a.csv": b"1\n", "t/d/b.csv": b"2\n"})
    message = f" {name} table: use .*{advice}"

    with pytest.raises(UnsupportedTableError, match=message):
        merge(open_merge_workspace(str(root / "t")))
    with pytest.raises(UnsupportedTableError, match=f"lies in {root}/t, which is an? {name}"):
        open_merge_workspace(str(root / "t/d"))
    workspace = open_merge_workspace(str(root))
    assert advice in reasons(workspace)["t/"]
    assert 0 == merge(workspace).files_before
    assert 0 == small_file_counts(workspace).files


def test_a_transactional_hive_table_is_refused(root: Path) -> None:
    fill(root, {"delta_0000001_0000001_0000/a.orc": b"", "base_0000002/b.orc": b""})

    with pytest.raises(UnsupportedTableError, match=r"transactional Hive table: use Hive's own ALTER TABLE"):
        merge(open_merge_workspace(str(root)))


def test_a_directory_that_is_not_there_is_said_by_name(root: Path) -> None:
    with pytest.raises(DirectoryNotFoundError, match=f"There is no directory {root}; give the path"):
        merge(open_merge_workspace(str(root)))


def test_a_csv_dialect_that_cannot_be_told_is_asked_for(root: Path) -> None:
    """Nothing of it is merged; the plan and the report say which setting to give."""
    workspace = fill(root, {"a.csv": b"x,y\np,q\n", "b.csv": b"x,y\nr,s\n"})
    report = merge(workspace, MergeSettings())

    assert 2 == len(seen(root))
    assert "give csv_header as 'yes' or 'no'" in report.warnings[0]
    merge(workspace, MergeSettings(csv_header="yes"))
    assert [b"x,y\np,q\nr,s\n"] == list(seen(root).values())


def test_what_was_detected_is_in_the_plan(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"id;n\n1;x\n", "b.csv": b"id;n\n2;y\n"})
    planned = plan_merge(workspace, now=NOW)

    (group,) = read_merge_plan(workspace, planned.path).groups
    assert {"header": "yes", "encoding": "utf-8", "delimiter": ";", "how": "detected in a.csv, b.csv"} == group.detected


def test_a_damaged_file_is_named_or_left_where_it_is(root: Path) -> None:
    workspace = fill(root, {"a.json": b"{}\n", "b.json": b'{"a": ', "c.json": b"{}\n"})
    with pytest.raises(UnreadableFileError, match=r"b\.json cannot be merged"):
        merge(workspace)
    assert 3 == len(seen(root))
    report = merge(workspace, MergeSettings(on_unreadable="skip"))

    assert [b"{}\n{}\n", b'{"a": '] == list(seen(root).values())
    assert ("b.json",) == report.groups[0].skipped
    (warning,) = report.warnings
    assert "Left where they were, since they cannot be merged: b.json; the log says why" == warning


def test_an_error_ends_the_run_and_its_report_says_what_was_done(root: Path) -> None:
    workspace = fill(root, {f"{day}/{name}.json": b"{}\n" for day in "abc" for name in "12"})
    (root / "b/1.json").write_bytes(b"[1]")
    with pytest.raises(UnreadableFileError, match=r"b/1\.json"):
        merge(workspace, MergeSettings(parallel_groups=1))

    assert 5 == len(seen(root))
    (name,) = names(root / STATE / "reports")
    report = json.loads((root / STATE / "reports" / name).read_bytes())
    assert ("failed", 1, 2) == (report["outcome"], report["files_after"], report["files_before"])


def test_schemas_that_cannot_be_joined_are_refused_with_both_files(root: Path) -> None:
    workspace = fill(root, {"x": b""})
    orc.write_table(pa.table({"a": [1]}), root / "a.orc")
    orc.write_table(pa.table({"a": ["1"]}), root / "b.orc")

    with pytest.raises(SchemaConflictError, match=r"b\.orc and int64 in .*a\.orc"):
        merge(workspace)
    assert "no safe promotion" in merge(workspace, MergeSettings(on_unreadable="skip")).warnings[0]
    assert 3 == len(seen(root))


def test_limits_leave_the_rest_to_the_next_run(root: Path) -> None:
    workspace = fill(root, {f"{day}/{name}.csv": b"1\n" for day in "abc" for name in "12"})
    settings = replace(SETTINGS, max_groups=2)

    assert [4, 2, 0] == [merge(workspace, settings).files_before for _ in range(3)]


def test_include_exclude_formats_and_recursion_choose_files(root: Path) -> None:
    files = {f"{day}/{name}": b"{}\n" for day in "ab" for name in ("1.json", "2.json", "1.csv", "2.csv")}
    workspace = fill(root, {**files, "1.json": b"{}\n", "2.json": b"{}\n"})

    def chosen(**given: Any) -> list[str]:
        plan = plan_merge(workspace, now=NOW, settings=replace(SETTINGS, **given)).plan
        return [f"{group.directory}{group.kind.extension}" for group in plan.groups]

    assert [".json", "a.csv", "a.json", "b.csv", "b.json"] == chosen()
    assert [".json", "a.json", "b.json"] == chosen(formats=("json",))
    assert ["a.csv", "a.json"] == chosen(include=("a/**",))
    assert [".json", "b.json"] == chosen(exclude=("*.csv", "a/*"))
    assert [".json"] == chosen(recursive=False)


def test_small_files_are_counted_by_listings_alone(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "d/b.csv": b"x" * 100, "_SUCCESS": b"", "x.txt": b"1"})
    counts = small_file_counts(workspace, settings=MergeSettings(small_file_bytes=100))

    assert (2, 2, 1, 102, 2, 0.5) == (
        counts.directories,
        counts.files,
        counts.small_files,
        counts.bytes,
        counts.small_bytes,
        counts.ratio,
    )


def test_a_merged_file_is_for_those_who_could_read_its_inputs(root: Path) -> None:
    """Neither a group that read along is shut out, nor is a private file shown to everybody."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n", "c/a.csv": b"3\n", "c/b.csv": b"4\n"})
    for path, mode in (("a.csv", 0o600), ("b.csv", 0o644), ("c/a.csv", 0o664), ("c/b.csv", 0o664)):
        (root / path).chmod(mode)
    before = os.umask(0o077)
    try:
        merge(workspace)
    finally:
        os.umask(before)
    modes = {path.parent.name: path.stat().st_mode & 0o777 for path in root.rglob("*-merged-*.csv")}

    assert modes == {"lake": 0o600, "c": 0o664}


def test_names_without_an_extension_are_left_alone(root: Path) -> None:
    """Also where they end as one of a known format does, or are the name of one."""
    files = {"json": b'{"a": 1}\n', "bison": b'{"a": 2}\n', "a.json": b'{"a": 3}\n', "b.json": b'{"a": 4}\n'}
    workspace = fill(root, files)
    assert "its extension is none of" in reasons(workspace)["json"]
    assert merge(workspace).files_before == 2
    assert {"json", "bison"} < set(names(root))
