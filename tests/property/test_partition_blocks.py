from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.planning.expiry_blocks import PartitionBlocks
from tests.property import strategies as tables

SEGMENTS = st.sampled_from(["a=1", "b=1", "b=2", "c=3", "1", "2", "a", "a=", "b=%2F", "a=1-x", "x=1", "", " "])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)


@st.composite
def schemes(draw: st.DrawFn) -> PartitionScheme:
    fields = ("a", "b", "c")[: draw(st.integers(0, 3))]
    return PartitionScheme(fields=fields, hive_style=draw(st.booleans()), url_encoded=draw(st.booleans()))


@given(scheme=schemes(), paths=st.lists(PATHS, unique=True, max_size=30))
def test_blocks_have_the_values_that_each_path_has(scheme: PartitionScheme, paths: list[str]) -> None:
    """Reading a folder at once gives what reading each path gives: hive style, plain, mixed, encoded, or no fit."""
    rows = [tables.partition(path, instant="20261130000000000", total_bytes=1) for path in paths]
    found = PartitionBlocks.of(rows, scheme=scheme)
    expected = {path: scheme.values(path) for path in paths}
    values = {
        found.rows[place].partition_path: block.values(number) if scheme.fields else ()
        for block in found.blocks
        for number, place in enumerate(block.places)
    }
    misfits = {found.rows[place].partition_path: None for place in found.misfits}
    assert expected == {**values, **misfits}
    assert len(paths) == len(values) + len(misfits)
