"""What holds of every prediction of an insert, whatever the partition and the settings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice
from airflow_hudi_maint.core.model.sizing import AverageRecordSize, EstimatorRule, PartitionFiles, SizingSettings
from airflow_hudi_maint.core.planning.sizing import insert_split, predict_inserts
from airflow_hudi_maint.core.planning.sizing_order import hash_set_order

INSTANT = "20261130000000000"
SIZES = st.lists(st.integers(1, 2_000), max_size=20)
SETTINGS = st.builds(
    SizingSettings,
    max_file_bytes=st.integers(100, 2_000),
    small_file_bytes=st.integers(0, 2_000),
    insert_split_records=st.integers(1, 100),
    auto_split=st.booleans(),
    small_file_candidates=st.integers(0, 3),
)
AVERAGES = st.builds(
    AverageRecordSize, bytes=st.integers(1, 300), rule=st.sampled_from(EstimatorRule), instants=st.just(())
)


def partition(sizes: list[int]) -> PartitionFiles:
    slices = []
    for number, size in enumerate(sizes):
        base = BaseFile(name=f"f{number}", file_id=f"f{number}", instant=INSTANT, bytes=size)
        slices.append(FileSlice(partition_path="", file_id=base.file_id, base_instant=INSTANT, base_file=base))
    return PartitionFiles(partition_path="", slices=tuple(slices))


@given(sizes=SIZES, settings=SETTINGS, average=AVERAGES, inserts=st.integers(0, 2_000), is_merge_on_read=st.booleans())
def test_every_record_has_one_place(
    *, sizes: list[int], settings: SizingSettings, average: AverageRecordSize, inserts: int, is_merge_on_read: bool
) -> None:
    """None is lost or doubled, no small file is overfilled, and no new one gets more than the split."""
    predicted = predict_inserts(
        partition(sizes), inserts=inserts, settings=settings, average=average, is_merge_on_read=is_merge_on_read
    )
    records = [one.records for one in predicted.grown] + [one.records for one in predicted.new]
    assert sum(records) == inserts
    assert all(count > 0 for count in records)
    assert all(one.expected_bytes <= settings.max_file_bytes for one in predicted.grown)
    assert all(one.bytes_before < settings.small_file_bytes for one in predicted.grown)
    assert all(one.records <= insert_split(settings, average) for one in predicted.new)
    assert len({one.file_id for one in predicted.grown}) == len(predicted.grown)
    assert not {one.file_id for one in predicted.grown} & {file_id for file_id, _ in predicted.ignored}
    if is_merge_on_read:
        assert len(predicted.grown) <= settings.small_file_candidates


@given(st.permutations([f"{number:x}-0" for number in range(30)]), st.integers(0, 60))
def test_the_order_of_a_hash_set_does_not_depend_on_how_it_is_asked(texts: list[str], grown: int) -> None:
    """The same texts come in the same order, and none is lost."""
    found = hash_set_order(texts, filled_with=30, grown_to=grown)
    assert sorted(found) == sorted(texts)
    assert found == hash_set_order(sorted(texts), filled_with=30, grown_to=grown)
