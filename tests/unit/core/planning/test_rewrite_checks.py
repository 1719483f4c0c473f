"""Comparing the files of before and after, by hand-made facts."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_hudi_maint.core.model.file_facts import Bound, FileFacts
from airflow_hudi_maint.core.model.verification import Verdict, VerifyMode, VerifySettings
from airflow_hudi_maint.core.planning.prediction import PastRewrite, predict_rewrite
from airflow_hudi_maint.core.planning.rewrite_checks import (
    GroupsFacts,
    PartitionFacts,
    check_groups,
    check_metadata,
    check_nulls,
    check_records,
    check_schema,
    check_sizes,
)
from airflow_hudi_maint.core.planning.sort_effect import mean_depth, sort_effects
from airflow_hudi_maint.core.planning.verify_choice import chosen_partitions

BASE = {"id": "string", "fare": "int"}


def _file(
    path: str,
    *,
    rows: int = 10,
    nulls: Mapping[str, int | None] | None = None,
    types: Mapping[str, str] | None = None,
    ranges: Mapping[str, tuple[Bound, Bound]] | None = None,
    unranged: frozenset[str] = frozenset(),
) -> FileFacts:
    return FileFacts(
        path=path,
        rows=rows,
        null_counts=nulls if nulls is not None else dict.fromkeys(types or BASE, 0),
        types=types or BASE,
        ranges=ranges or {},
        unranged=unranged,
    )


def _partition(*inputs: FileFacts, outputs: list[FileFacts], has_logs: bool = False) -> PartitionFacts:
    return PartitionFacts(partition_path="day=1", inputs=inputs, outputs=tuple(outputs), has_logs=has_logs)


def test_a_column_that_was_added_since_counts_as_null_in_older_files() -> None:
    """Hudi rewrites with the schema of the table: the rows of old files have no value in a new column."""
    evolved = {**BASE, "tip": "double"}
    old, new = _file("old"), _file("new", types=evolved, nulls={"id": 0, "fare": 0, "tip": 2})
    output = _file("out", rows=20, types=evolved, nulls={"id": 0, "fare": 0, "tip": 12})
    facts = [_partition(old, new, outputs=[output])]

    assert Verdict.PASSED is check_nulls(facts).verdict
    assert Verdict.PASSED is check_schema(facts, table_columns=frozenset(evolved)).verdict


@pytest.mark.parametrize(
    ("nulls", "verdict"),
    [(12, Verdict.PASSED), (2, Verdict.NOTICED), (11, Verdict.NOTICED), (1, Verdict.FAILED), (13, Verdict.FAILED)],
)
def test_a_column_that_older_files_lack_may_get_values_and_lose_none(nulls: int, verdict: Verdict) -> None:
    """A renamed column keeps its old name in old files, and one may have a default, or have stood in the path alone."""
    evolved = {**BASE, "tip": "double"}
    old, new = _file("old"), _file("new", types=evolved, nulls={"id": 0, "fare": 0, "tip": 2})
    output = _file("out", rows=20, types=evolved, nulls={"id": 0, "fare": 0, "tip": nulls})
    check = check_nulls([_partition(old, new, outputs=[output])])
    assert verdict is check.verdict, check.message
    assert verdict is Verdict.PASSED or "tip of partition 'day=1' had 12 rows without a value" in check.message


def test_a_column_of_the_table_that_no_old_file_has_yet_may_come() -> None:
    """All inputs are older than the column: the output has it, and the table does; what the table lacks is wrong."""
    output = _file("out", types={**BASE, "tip": "double"}, nulls={"id": 0, "fare": 0, "tip": 10})
    facts = [_partition(_file("old"), outputs=[output])]

    added = check_schema(facts, table_columns=frozenset({"id", "fare", "tip"}))
    strange = check_schema(facts, table_columns=frozenset({"id", "fare"}))
    assert (Verdict.PASSED, Verdict.FAILED) == (added.verdict, strange.verdict)
    assert added.message.endswith("and what the table added since: tip")


@pytest.mark.parametrize(
    ("old", "new", "is_right"),
    [
        ("int", "long", True),
        ("long", "double", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(10,4)", False),
        ("record<a:int>", "record<a:long>", True),
        ("record<a:long>", "record<a:int>", False),
        ("record<a:int>", "record<a:int,b:string>", True),
        ("record<a:int>", "record<b:string,a:int>", True),
        ("record<a:int>", "record<a:boolean,b:int>", False),
        ("record<a:record<b:int,c:decimal(4,2)>>", "record<a:record<b:long,c:decimal(6,2)>>", True),
        ("record<a:record<b:int>,c:int>", "record<a:record<b:boolean>,c:int>", False),
        ("array<record<a:int>>", "array<record<a:int,b:int>>", True),
        ("array<int>", "array<boolean>", False),
        ("map<string,int>", "map<string,long>", True),
        ("record<a:int,b:string>", "record<a:int>", False),
        ("array<int>", "map<string,int>", False),
        ("long", "int", False),
        ("timestamp-micros", "timestamp-millis", False),
    ],
)
def test_types_may_widen_as_hudi_widens_them(old: str, new: str, is_right: bool) -> None:  # noqa: FBT001
    """A narrower type, or another one, is a difference."""
    before, after = _file("old", types={"id": "string", "x": old}), _file("out", types={"id": "string", "x": new})
    check = check_schema([_partition(before, outputs=[after])], table_columns=frozenset({"id", "x"}))
    assert is_right is (check.verdict is Verdict.PASSED)


@pytest.mark.parametrize(
    ("columns", "is_right"),
    [({"id", "x", "x.a"}, True), ({"id", "x", "x.a", "x.b"}, False), ({"id", "x"}, False)],
)
def test_a_field_that_the_table_dropped_from_a_record_may_go(columns: set[str], is_right: bool) -> None:  # noqa: FBT001
    """Where the table's schema tells of other fields and not of this one; else it is missing."""
    before, after = _file("old", types={"x": "record<a:int,b:string>"}), _file("out", types={"x": "record<a:int>"})
    check = check_schema([_partition(before, outputs=[after])], table_columns=frozenset(columns))
    assert is_right is (check.verdict is Verdict.PASSED)


def test_the_newest_file_decides_on_a_type() -> None:
    """Of int and then long, long is what the table has; an output that is int again is wrong."""
    files = (_file("old", types={"x": "int"}), _file("new", types={"x": "long"}))
    narrow = check_schema(
        [_partition(*files, outputs=[_file("out", types={"x": "int"})])], table_columns=frozenset("x")
    )
    assert "column x was long and is int in out" == narrow.message


def test_a_column_that_the_table_dropped_may_go() -> None:
    """Its nulls are not counted either."""
    facts = [_partition(_file("old"), outputs=[_file("out", types={"id": "string"})])]
    assert Verdict.PASSED is check_schema(facts, table_columns=frozenset({"id"})).verdict
    assert Verdict.PASSED is check_nulls(facts).verdict


def test_a_column_without_statistics_is_said() -> None:
    """It is not counted as right."""
    facts = [_partition(_file("old", nulls={"id": 0, "fare": None}), outputs=[_file("out")])]
    check = check_nulls(facts)
    assert (Verdict.PASSED, "nulls of 1 column are the same; not told by the footers: fare") == (
        check.verdict,
        check.message,
    )


def test_rows_that_the_commit_did_not_write_are_seen_with_log_files_too() -> None:
    """What went in is unknown there, but the commit and its files have to agree."""
    facts = [_partition(_file("old"), outputs=[_file("out", rows=9)], has_logs=True)]
    assert Verdict.UNKNOWN is check_records(facts, noted={"out": 9}).verdict
    assert "out has 9 rows, and the commit says 8" in check_records(facts, noted={"out": 8}).message


def test_one_of_several_partitions_may_be_unknown() -> None:
    """The others are compared, and the one is named."""
    known = _partition(_file("old"), outputs=[_file("out")])
    check = check_records([known, _partition(outputs=[], has_logs=True)], noted={})
    assert (Verdict.PASSED, True) == (check.verdict, "not told: partition 'day=1' (log files" in check.message)


def test_a_group_rewritten_under_its_own_id_is_no_replacement() -> None:
    """Hudi's single-file sort writes a new file of the same group."""
    planned = frozenset({("p", "a"), ("p", "b")})
    kept = check_groups(GroupsFacts(planned=planned, replaced=frozenset(), kept=planned))
    more = check_groups(GroupsFacts(planned=planned, replaced=planned | {("p", "c")}, kept=frozenset()))
    assert (Verdict.PASSED, Verdict.FAILED) == (kept.verdict, more.verdict)
    assert "1 file group replaced that the plan does not name (p/c)" == more.message


def test_sizes_off_the_target_are_noticed() -> None:
    """They are no fault: Hudi closes a file by an estimate."""
    check = check_sizes([200, 10, 10], target_bytes=100, planned_files=2)
    assert Verdict.NOTICED is check.verdict
    assert "3 files, and the plan expected 2" in check.message
    assert "1 file above the target" in check.message


def test_metadata_partitions_are_a_set() -> None:
    """Their order is nobody's business; one that comes or goes is."""
    assert Verdict.PASSED is check_metadata("files,column_stats", "column_stats,files").verdict
    assert "column_stats disappeared" == check_metadata("files,column_stats", "files").message
    assert "column_stats appeared" == check_metadata("files", "files,column_stats").message


def test_sorting_that_helped_shows_in_the_depth() -> None:
    """Two files over the whole range become two halves; a file without any value counts for nothing."""
    before = [_file(name, ranges={"fare": (0, 9)}) for name in "ab"]
    after = [_file("c", ranges={"fare": (0, 4)}), _file("d", ranges={"fare": (5, 9)}), _file("e")]
    (effect,) = sort_effects([_partition(*before, outputs=after)], columns=["fare", "gone"])
    assert ("fare", 2, 2, 2.0, 1.0) == (
        effect.column,
        effect.files_before,
        effect.files_after,
        effect.depth_before,
        effect.depth_after,
    )


def test_a_file_without_statistics_leaves_the_effect_unknown() -> None:
    """A mean over some of the files would flatter."""
    silent = _file("a", unranged=frozenset({"fare"}))
    assert () == sort_effects([_partition(silent, outputs=[_file("c", ranges={"fare": (0, 4)})])], columns=["fare"])


def test_a_column_that_became_a_text_leaves_the_effect_unknown() -> None:
    """Hudi lets a number become a text: what is measured after a rewrite must not fail on that."""
    old, new = _file("old", ranges={"fare": (1, 9)}), _file("new", ranges={"fare": ("1", "9")})
    output = _file("out", rows=20, ranges={"fare": ("1", "9")})
    assert () == sort_effects([_partition(old, new, outputs=[output])], columns=["fare"])


def test_depth_of_texts_and_of_nothing() -> None:
    """Any values that compare will do."""
    assert (0.0, 1.0, 3.0) == (mean_depth([]), mean_depth([("a", "b")]), mean_depth([("a", "z")] * 3))


def test_a_sample_takes_whole_partitions_and_depends_on_the_instant() -> None:
    """A retry reads the same ones; over many instants each partition has its turn; the limit holds."""
    counts = {f"day={day}": 10 for day in range(10)}
    settings = VerifySettings(mode=VerifyMode.SAMPLE, max_files=35)
    samples = [chosen_partitions(counts, settings, instant=str(number)) for number in range(60)]
    assert all(3 == len(one) for one in samples)
    assert set(counts) == {path for one in samples for path in one}
    assert samples[0] == chosen_partitions(counts, settings, instant="0")


def _past(*runs: tuple[int, float]) -> list[PastRewrite]:
    return [PastRewrite(bytes_before=size, bytes_after=size // 2, seconds=seconds) for size, seconds in runs]


@pytest.mark.parametrize(
    ("runs", "size", "seconds"),
    [
        ([(100, 20.0)], 100, 20.0),
        ([(100, 20.0)], 300, 60.0),
        ([(100, 20.0)], 10, 20.0),
        ([(100, 20.0), (1000, 50.0)], 900, 50.0),
        ([(100, 11.0), (200, 12.0), (400, 14.0)], 1000, 20.0),
        ([(100, 30.0), (200, 20.0), (400, 10.0)], 1000, 20.0),
        ([(100, 1.0), (200, 3.0), (400, 9.0)], 700, 13.0),
    ],
)
def test_a_prediction_rests_on_earlier_runs(runs: list[tuple[int, float]], size: int, seconds: float) -> None:
    """By the nearest of few, by a line through more; a line that falls, or starts below zero, is not believed."""
    prediction = predict_rewrite(_past(*runs), input_bytes=size)
    assert prediction is not None
    assert (seconds, size // 2, len(runs)) == (prediction.seconds, prediction.bytes_after, prediction.runs)


def test_nothing_is_predicted_from_nothing() -> None:
    """A run that found everything done has neither bytes nor seconds."""
    assert predict_rewrite(_past((0, 0.0)), input_bytes=10) is None
