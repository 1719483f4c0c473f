"""What the jobs that drop, clean, save and restore ask of Hudi, with a Spark that only says what it was asked."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from tests.unit.job_scripts import JOBS, Ran, delete, request, writing

OPTION = "hoodie.datasource.write.partitions.to.delete"
SAVED, FIRST, SECOND, THIRD = (f"202611301{hour}0000000" for hour in range(4))
TIMELINE = ".hoodie/timeline"
SCRIPTS = sorted(JOBS.glob("*.py"))


def restore(**arguments: Json) -> JobRequest:
    given: dict[str, Json] = {
        "partitions": ["day=1/hour=2", "day=3/hour=4"],
        "as_of": SAVED,
        "partition_columns": [],
        "marker": "a plan",
    }
    return writing(JobKind.RESTORE_PARTITIONS, **{**given, **arguments})


def in_order(ran: Ran, *calls: str) -> list[str]:
    """The names of these calls, in the order in which they were made."""
    return [name for line in ran.calls if (name := line.split(" ")[0]) in calls]


def test_more_than_a_thousand_partitions_take_a_commit_for_each_thousand(tmp_path: Path) -> None:
    """1,500 names are dropped by two commits, each name once and in order; the report has them all."""
    names = [f"day=1/hour={hour}" for hour in range(1500)]
    ran = Ran(delete(*names), tmp_path=tmp_path, script="delete_partitions")

    dropped = [options[OPTION].split(",") for options in ran.writes()]
    assert [1000, 500] == [len(one) for one in dropped]
    assert names == [*dropped[0], *dropped[1]]
    assert names == [row["partition"] for row in ran.report.rows]


def test_a_thousand_partitions_take_one_commit(tmp_path: Path) -> None:
    """The limit itself is no reason for a second commit."""
    ran = Ran(delete(*(f"day={day}/hour=1" for day in range(1000))), tmp_path=tmp_path, script="delete_partitions")
    assert 1 == len(ran.writes())


def test_an_encoded_wildcard_is_refused(tmp_path: Path) -> None:
    """Hudi decodes names before it looks for stars."""
    ran = Ran(delete("day=%2A/hour=1"), tmp_path=tmp_path, script="delete_partitions")
    assert (1, False) == (ran.code, ran.report.ok)
    assert "'day=%2A/hour=1'" in str(ran.report.error_message)
    assert [] == ran.said("save")


def test_a_savepoint_is_made_before_anything_is_dropped(tmp_path: Path) -> None:
    """The instant that was asked for is saved, by whom and why, with the table's own write options."""
    saved: dict[str, Json] = {"instant": SAVED, "user": "us", "comments": "before a plan's drop"}
    ran = Ran(delete("day=1/hour=2", savepoint=saved), tmp_path=tmp_path, script="delete_partitions")

    assert ["set", "sql", "unset", "save"] == in_order(ran, "set", "sql", "unset", "save")
    assert ran.said("sql") == [
        (
            rf"CALL create_savepoint(path => '/lake/o\'trips', commit_time => '{SAVED}', user => 'us', "
            r"comments => 'before a plan\'s drop')"
        )
    ]


def test_without_a_savepoint_nothing_is_saved(tmp_path: Path) -> None:
    """Absent and null mean the same."""
    ran = Ran(delete("day=1/hour=2", savepoint=None), tmp_path=tmp_path, script="delete_partitions")
    assert [] == ran.said("sql")


def test_what_earlier_tries_left_is_rolled_back_first_and_newest_first(tmp_path: Path) -> None:
    """Hudi refuses to undo an instant that a later one may rest on; its client is closed before the drop."""
    ran = Ran(delete("day=1/hour=2", leftovers=[FIRST, THIRD, SECOND]), tmp_path=tmp_path, script="delete_partitions")

    assert [json.dumps(one) for one in (THIRD, SECOND, FIRST)] == ran.said("rollback")
    assert ["rollback"] * 3 + ["close", "save"] == in_order(ran, "rollback", "close", "save")


def failing(tmp_path: Path, *, known_pending: Json) -> Ran:
    """A drop that Hudi refuses, with three pending replace commits: a known one, an overwrite and the drop's own."""
    files = {FIRST: "DELETE_PARTITION", SECOND: "INSERT_OVERWRITE", THIRD: "DELETE_PARTITION"}
    asked = delete("day=1/hour=2", known_pending=known_pending, timeline_folder=TIMELINE)
    hudi: dict[str, Json] = {
        "save_fails": "a pending table service",
        "pending": [[time, "replacecommit"] for time in files] + [[SAVED, "commit"]],
        "files": {f"/lake/o'trips/{TIMELINE}/{time}.replacecommit.requested": text for time, text in files.items()},
    }
    return Ran(asked, tmp_path=tmp_path, script="delete_partitions", hudi=hudi)


def test_a_drop_that_fails_takes_back_what_it_requested_and_nothing_else(tmp_path: Path) -> None:
    """A drop that was pending before, another writer's overwrite and its commit stay as they are."""
    ran = failing(tmp_path, known_pending=[FIRST])
    assert [json.dumps(THIRD)] == ran.said("rollback")
    assert "RuntimeError: a pending table service" == ran.report.error_message


def test_beside_other_writers_a_drop_that_fails_takes_nothing_back(tmp_path: Path) -> None:
    """A drop that is pending then can be another writer's, at work."""
    ran = failing(tmp_path, known_pending=None)
    assert [] == ran.said("rollback")
    assert "RuntimeError: a pending table service" == ran.report.error_message


def test_cleaning_goes_by_the_options_of_the_run(tmp_path: Path) -> None:
    """They come over the table's own, the client is closed, and the report says what the cleaner did."""
    asked = request(JobKind.CLEAN, options={"hoodie.cleaner.commits.retained": "3"})
    ran = Ran(asked, tmp_path=tmp_path, script="clean", hudi={"cleaned": 7})

    options = {"hoodie.write.table.version": "6", "hoodie.cleaner.commits.retained": "3"}
    assert [json.dumps(options)] == ran.said("withProps")
    assert ['"/lake/o\'trips"'] == ran.said("withPath")
    assert ["clean", "close"] == in_order(ran, "clean", "close")
    assert ({"files_deleted": 7, "earliest_commit_to_retain": "20261130110000000"},) == ran.report.rows


def test_cleaning_nothing_gives_no_row(tmp_path: Path) -> None:
    """Hudi answers with nothing when no commit is old enough; that is no failure."""
    ran = Ran(request(JobKind.CLEAN, options={}), tmp_path=tmp_path, script="clean")
    assert (0, True, ()) == (ran.code, ran.report.ok, ran.report.rows)


def test_each_savepoint_is_released_by_name(tmp_path: Path) -> None:
    """One call for each, and a row for each."""
    asked = request(JobKind.RELEASE_SAVEPOINTS, instants=[FIRST, SECOND])
    ran = Ran(asked, tmp_path=tmp_path, script="release_savepoints")

    call = r"CALL delete_savepoint(path => '/lake/o\'trips', instant_time => '{}')"
    assert [call.format(FIRST), call.format(SECOND)] == ran.said("sql")
    assert ({"savepoint": FIRST}, {"savepoint": SECOND}) == ran.report.rows


def test_releasing_no_savepoint_by_name_is_refused(tmp_path: Path) -> None:
    """Hudi would release the newest one, whoever made it."""
    ran = Ran(request(JobKind.RELEASE_SAVEPOINTS, instants=[]), tmp_path=tmp_path, script="release_savepoints")
    assert (1, False) == (ran.code, ran.report.ok)
    assert [] == ran.said("sql")


ROWS_THEN: Json = [["day=1/hour=2", 4, 17], ["day=3/hour=4", 1, -5]]


def test_restoring_reads_as_of_the_instant_and_inserts(tmp_path: Path) -> None:
    """One insert, that keeps every row that was read and carries the marker; counts and digests are reported."""
    hudi: dict[str, Json] = {"then": ROWS_THEN, "now": [["day=1/hour=2", 4, 17]]}
    ran = Ran(restore(), tmp_path=tmp_path, script="restore_partitions", hudi=hudi)

    assert [f"as.of.instant {SAVED}"] == ran.said("option")
    options = ran.options()
    assert "insert" == options["hoodie.datasource.write.operation"]
    assert "false" == options["hoodie.combine.before.insert"]
    assert "a plan" == options[options["hoodie.datasource.write.commitmeta.key.prefix"]]
    assert "6" == options["hoodie.write.table.version"]
    assert "select `id` `day`" in ran.calls
    assert ran.report.rows == (
        {"partition": "day=1/hour=2", "records_then": 4, "records_now": 4, "digest_then": "17", "digest_now": "17"},
        {"partition": "day=3/hour=4", "records_then": 1, "records_now": 0, "digest_then": "-5", "digest_now": "0"},
    )


def test_restoring_leaves_alone_the_keys_that_are_there_again(tmp_path: Path) -> None:
    """Rows that came into a partition since are not doubled."""
    hudi: dict[str, Json] = {"then": ROWS_THEN, "now": [], "head": [["k1"]]}
    ran = Ran(restore(), tmp_path=tmp_path, script="restore_partitions", hudi=hudi)
    assert ["_hoodie_record_key _hoodie_partition_path left_anti"] == ran.said("join")


def test_restoring_what_held_no_row_writes_nothing(tmp_path: Path) -> None:
    """An empty commit would look like a restore, and count and digest would agree on nothing."""
    ran = Ran(restore(), tmp_path=tmp_path, script="restore_partitions", hudi={"then": [], "now": []})
    assert (1, False) == (ran.code, ran.report.ok)
    assert "nothing to restore" in str(ran.report.error_message)
    assert [] == ran.said("save")


def test_restoring_opens_no_other_partitions_files(tmp_path: Path) -> None:
    """Where the levels are the columns' values as text, Spark is given a condition on those columns."""
    asked = restore(partitions=["id=1/day=it's", "2/b"], partition_columns=["id", "day"])
    ran = Ran(asked, tmp_path=tmp_path, script="restore_partitions", hudi={"then": ROWS_THEN, "now": []})
    assert "(((`id` = 1) and (`day` = it's)) or ((`id` = 2) and (`day` = b)))" in ran.said("where")


@pytest.mark.parametrize(
    ("version", "key", "options"),
    [
        ("6", "id:k1", {"hoodie.write.complex.keygen.new.encoding": "false"}),
        ("8", "k1", {"hoodie.write.complex.keygen.new.encoding": "true"}),
        ("9", "id:k1", {"hoodie.write.complex.keygen.new.encoding": "false"}),
    ],
)
def test_restored_keys_are_written_as_the_table_has_them(
    tmp_path: Path, version: str, key: str, options: dict[str, str]
) -> None:
    """A complex key generator of one field wrote keys with or without the field's name, by release."""
    hudi: dict[str, Json] = {"then": ROWS_THEN, "now": [], "head": [[key]]}
    ran = Ran(_complex(version), tmp_path=tmp_path, script="restore_partitions", hudi=hudi)
    assert options.items() <= ran.options().items()


def test_keys_that_hudi_would_write_otherwise_are_not_restored(tmp_path: Path) -> None:
    """On table version 9 the field's name is always written: the rows would be doubles at the next upsert."""
    hudi: dict[str, Json] = {"then": ROWS_THEN, "now": [], "head": [["k1"]]}
    ran = Ran(_complex("9"), tmp_path=tmp_path, script="restore_partitions", hudi=hudi)
    assert (1, False) == (ran.code, ran.report.ok)
    assert "doubles at the next upsert" in str(ran.report.error_message)
    assert [] == ran.said("save")


def _complex(version: str) -> JobRequest:
    asked = restore(keygenerator="org.apache.hudi.keygen.ComplexKeyGenerator")
    return JobRequest(
        kind=asked.kind,
        base_path=asked.base_path,
        table_name=asked.table_name,
        write_options={"hoodie.write.table.version": version},
        arguments=asked.arguments,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_python_3_9(script: Path) -> None:
    """A cluster's Python may be older than Airflow's: no later syntax, and none of the later arguments of zip."""
    tree = ast.parse(script.read_text(encoding="utf-8"), filename=str(script), feature_version=(3, 9))

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert [] == [one.lineno for one in calls for word in one.keywords if (one.func.id, word.arg) == ("zip", "strict")]
    unions = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]
    future = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    assert future or not unions, "X | Y in an annotation needs the future import"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_import_only_what_a_cluster_has(script: Path) -> None:
    """The standard library, pyspark, and each other by bare name; ours only for type checkers.

    The one exception brings the core along as an archive: see docs/architecture.md.
    """
    tree = ast.parse(script.read_text(encoding="utf-8"), filename=str(script))
    checked = {id(inner) for node in ast.walk(tree) if _is_type_checking(node) for inner in _bodies(node)}
    found = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in checked
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
    }
    known = {*sys.stdlib_module_names, "pyspark", *(path.stem for path in SCRIPTS)} - {"tomllib"}
    brought = {"airflow_hudi_maint"} if script.stem == "merge_files" else set()
    assert brought == found - known


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _bodies(node: ast.AST) -> list[ast.AST]:
    return [inner for one in getattr(node, "body", []) for inner in ast.walk(one)]
