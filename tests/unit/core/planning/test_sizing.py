"""How big Hudi's writers make files, by their settings and by what they saw before."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.sizing import (
    AverageRecordSize,
    CommitSizes,
    EstimatorRule,
    PartitionFiles,
    SizingSettings,
)
from airflow_hudi_maint.core.planning.sizing import predict_inserts
from airflow_hudi_maint.core.planning.sizing_advice import WrittenData, recommended_write_options
from airflow_hudi_maint.core.planning.sizing_estimate import average_record_size
from airflow_hudi_maint.core.planning.sizing_order import hash_set_order, java_hash

INSTANT = "20261130000000000"
TEN = AverageRecordSize(bytes=10, rule=EstimatorRule.NEWEST_OF_RECENT, instants=(INSTANT,))
TINY = SizingSettings(max_file_bytes=1000, small_file_bytes=900)
MIB = 1024**2


def file_slice(name: str, size: int, *, log_bytes: int = 0) -> FileSlice:
    base = BaseFile(name=name, file_id=name, instant=INSTANT, bytes=size)
    log = LogFile(name=f".{name}", file_id=name, instant=INSTANT, version=1, write_token="", bytes=log_bytes)
    return FileSlice(
        partition_path="day=1",
        file_id=name,
        base_instant=INSTANT,
        base_file=base if size else None,
        log_files=(log,) if log_bytes else (),
    )


def files(*slices: FileSlice, **known: frozenset[str]) -> PartitionFiles:
    return PartitionFiles(partition_path="day=1", slices=slices, **known)  # type: ignore[arg-type]


def commit(
    time: str, size: int, records: int, *, action: Action = Action.COMMIT, base_files: int = 1, log_bytes: int = 0
) -> CommitSizes:
    each = tuple((size // base_files, records // base_files) for _ in range(base_files))
    return CommitSizes(
        requested_time=time,
        action=action,
        operation="INSERT",
        total_bytes=size + log_bytes,
        total_records=records,
        file_count=base_files + bool(log_bytes),
        base_files=each,
    )


def test_a_full_partition_gets_new_files_only() -> None:
    """A file with room for less than a record takes none, and why is said."""
    predicted = predict_inserts(files(file_slice("a", 899)), inserts=5, settings=TINY, average=TEN)
    assert [one.file_id for one in predicted.grown] == ["a"]
    wide = AverageRecordSize(bytes=102, rule=TEN.rule)
    predicted = predict_inserts(files(file_slice("a", 899)), inserts=5, settings=TINY, average=wide)
    assert (predicted.grown, len(predicted.new)) == ((), 1)
    assert predicted.ignored == (("a", "its 101 bytes of room hold no record of 102"),)


def test_small_files_of_a_pending_clustering_take_nothing() -> None:
    held = files(file_slice("a", 100), clustering=frozenset({"a"}))
    predicted = predict_inserts(held, inserts=5, settings=TINY, average=TEN)
    assert predicted.ignored == (("a", "a pending clustering holds it"),)
    assert [one.records for one in predicted.new] == [5]


def test_on_merge_on_read_a_held_candidate_leaves_its_place_to_no_other() -> None:
    """Hudi takes the smallest first, and looks only then whether a clustering holds it."""
    held = files(file_slice("a", 100), file_slice("b", 200), clustering=frozenset({"a"}))
    predicted = predict_inserts(held, inserts=5, settings=TINY, average=TEN, is_merge_on_read=True)
    assert (predicted.grown, len(predicted.new)) == ((), 1)
    assert dict(predicted.ignored)["b"].endswith("a smaller one comes first")


def test_an_index_that_finds_keys_in_log_files_sends_inserts_there() -> None:
    """Log files count at what they will be in Parquet, and a file group of log files alone takes inserts."""
    settings = SizingSettings(max_file_bytes=1000, small_file_bytes=0, appends_to_log_files=True)
    predicted = predict_inserts(
        files(file_slice("a", 0, log_bytes=1000)), inserts=100, settings=settings, average=TEN, is_merge_on_read=True
    )
    assert [(one.bytes_before, one.records) for one in predicted.grown] == [(350, 65)]


@pytest.mark.parametrize(
    ("operation", "message"), [("bulk_insert", "does not size files"), ("delete", "does not size files")]
)
def test_operations_that_do_not_size_files_are_refused(operation: str, message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        predict_inserts(files(), inserts=1, settings=TINY, average=TEN, operation=operation)


def test_a_split_that_no_writer_survives_is_refused() -> None:
    """Hudi would keep a record of each of two million buckets in its driver."""
    settings = SizingSettings(max_file_bytes=1)
    with pytest.raises(InvalidSettingError, match=r"2,000,000 new files of 1 records each"):
        predict_inserts(files(), inserts=2_000_000, settings=settings, average=TEN)


def test_weights_are_shares_of_the_inserts() -> None:
    predicted = predict_inserts(files(file_slice("a", 700)), inserts=120, settings=TINY, average=TEN)
    assert predicted.weights == (0.25, 0.75)
    assert predicted.to_json()["inserts"] == 120
    assert "1 grows, 1 new" in predicted.describe()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hoodie.index.type": "bucket"}, "num.buckets"),
        ({"hoodie.record.size.estimator.class": "com.mine"}, "only org.apache"),
        ({"hoodie.parquet.max.file.size": "large"}, "no whole number"),
        ({"hoodie.record.size.estimation.threshold": "x"}, "no number"),
        ({"hoodie.parquet.max.file.size": "0"}, "too small"),
        ({"hoodie.record.size.estimation.threshold": "-1"}, "negative"),
    ],
)
def test_options_that_no_prediction_follows_from_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        SizingSettings.from_options(options)


@pytest.mark.parametrize("text", ["", "1", "one.two", "v1.2"])
def test_a_release_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidSettingError, match="no release of Hudi"):
        EstimatorRule.of_release(text)


def test_a_replace_commit_counts_in_the_oldest_rule_only() -> None:
    """Rows of clustering are smaller on disk, so later releases leave them out."""
    commits = [commit("1", 2000, 20), commit("2", 5000, 1000, action=Action.REPLACE_COMMIT)]
    found = {rule: average_record_size(commits, settings=TINY, rule=rule).bytes for rule in EstimatorRule}
    assert found == {
        EstimatorRule.NEWEST_LARGE_ENOUGH: 5,
        EstimatorRule.SUM_OF_LARGE_ENOUGH: 100,
        EstimatorRule.NEWEST_OF_RECENT: 100,
    }


def test_of_a_delta_commit_base_files_alone_count() -> None:
    """And 1.0 compares each file with the threshold, where the others compare their sum."""
    delta = commit("1", 1600, 160, action=Action.DELTA_COMMIT, base_files=2, log_bytes=90_000)
    found = {rule: average_record_size([delta], settings=TINY, rule=rule) for rule in EstimatorRule}
    assert [found[rule].bytes for rule in EstimatorRule] == [10, 1024, 10]
    assert [found[rule].is_guess for rule in EstimatorRule] == [False, True, False]


def test_only_the_newest_five_commits_count_from_1_0_on() -> None:
    commits = [commit("0", 99_000, 99)] + [commit(str(number), 10, 10) for number in range(1, 6)]
    found = [average_record_size(commits, settings=TINY, rule=rule).bytes for rule in EstimatorRule]
    assert found == [1000, 1024, 1024]


def test_metadata_is_taken_off_once_a_commit_in_1_0_and_once_a_file_later() -> None:
    settings = SizingSettings(small_file_bytes=900, metadata_bytes=100)
    wide = commit("1", 2000, 10, base_files=4)
    found = [average_record_size([wide], settings=settings, rule=rule).bytes for rule in EstimatorRule]
    assert found == [200, 190, 160]


def test_a_tiny_commit_of_wide_rows_makes_the_estimate_jump_unless_the_threshold_keeps_it_out() -> None:
    """With a threshold of 0 three rows in a file that is all footer count for 145 KB each."""
    commits = [commit("1", 200 * MIB, 200_000), commit("2", 437_478, 3)]
    kept_out = average_record_size(commits, settings=SizingSettings(), rule=EstimatorRule.NEWEST_OF_RECENT)
    let_in = average_record_size(
        commits, settings=SizingSettings(estimation_threshold=0), rule=EstimatorRule.NEWEST_OF_RECENT
    )
    assert (kept_out.bytes, let_in.bytes) == (1049, 145_826)


def test_java_s_hashes_overflow_and_take_surrogates_apart() -> None:
    assert java_hash("") == 0
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_the_table_of_a_hash_set_grows_by_its_load() -> None:
    """Twelve fit in sixteen buckets only where the set grew to them; one made from them has thirty-two."""
    texts = [chr(64 + number) for number in range(1, 13)]
    assert hash_set_order(["P", "a"], filled_with=0, grown_to=12) == ["P", "a"]
    assert hash_set_order(["P", "a"], filled_with=12, grown_to=12) == ["a", "P"]
    assert sorted(hash_set_order(texts, filled_with=12, grown_to=12)) == texts


def test_texts_of_one_bucket_come_as_they_arrived() -> None:
    assert hash_set_order(["a", "q"], filled_with=2, grown_to=2, arrivals=("q", "a")) == ["q", "a"]


def test_advice_says_when_no_commit_is_ever_measured() -> None:
    """Small commits leave the writer with its own estimate for ever."""
    data = WrittenData(record_bytes=80, commit_bytes=20 * MIB)
    advice = {one.key: one for one in recommended_write_options(120 * MIB, data=data)}
    assert advice["hoodie.parquet.small.file.limit"].value == str(100 * MIB)
    assert "none is ever measured" in advice["hoodie.copyonwrite.record.size.estimate"].reason


def test_advice_for_the_oldest_release_has_no_setting_that_it_lacks() -> None:
    data = WrittenData(record_bytes=80, metadata_bytes=400_000)
    keys = {
        rule: {one.key for one in recommended_write_options(120 * MIB, data=data, rule=rule)} for rule in EstimatorRule
    }
    assert "hoodie.record.size.estimator.average.metadata.size" not in keys[EstimatorRule.NEWEST_LARGE_ENOUGH]
    assert "hoodie.record.size.estimator.average.metadata.size" in keys[EstimatorRule.SUM_OF_LARGE_ENOUGH]


def test_advice_for_bulk_inserts_and_merge_on_read_has_their_settings() -> None:
    data = WrittenData(record_bytes=80, commit_bytes=1200 * MIB, commit_partitions=4)
    advice = recommended_write_options(
        120 * MIB,
        data=data,
        is_merge_on_read=True,
        bulk_insert=True,
        present={"hoodie.bulkinsert.shuffle.parallelism": "200"},
    )
    found = {one.key: (one.value, one.present) for one in advice}
    assert found["hoodie.bulkinsert.shuffle.parallelism"] == ("10", "200")
    assert found["hoodie.bulkinsert.sort.mode"] == ("GLOBAL_SORT", None)
    assert found["hoodie.merge.small.file.group.candidates.limit"] == ("3", None)


def test_filters_that_are_most_of_a_file_are_advised_against() -> None:
    """Unless a Bloom index reads them; and a target below twice their size is refused."""
    data = WrittenData(record_bytes=80, metadata_bytes=431_000)
    assert "hoodie.parquet.bloom.filter.enabled" in {one.key for one in recommended_write_options(MIB, data=data)}
    needed = recommended_write_options(MIB, data=data, looks_up_bloom_filters=True)
    assert "hoodie.parquet.bloom.filter.enabled" not in {one.key for one in needed}
    with pytest.raises(InvalidSettingError, match="431000 bytes beside its rows"):
        recommended_write_options(800_000, data=data)


def test_what_is_advised_gives_files_of_the_target() -> None:
    """The prediction under the advised options fills new files to the target."""
    options = {one.key: one.value for one in recommended_write_options(8 * MIB, data=WrittenData(record_bytes=100))}
    settings = SizingSettings.from_options(options)
    average = average_record_size([], settings=settings, rule=EstimatorRule.NEWEST_OF_RECENT)
    predicted = predict_inserts(files(), inserts=500_000, settings=settings, average=average)
    *full, _ = (one.expected_bytes for one in predicted.new)
    assert all(abs(size - 8 * MIB) <= 100 for size in full)
