"""Damaged HFiles and metadata tables end in our own errors, soon, and with the memory that the file deserves."""

from __future__ import annotations

import tracemalloc
import uuid
from contextlib import suppress

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import CorruptTableError, MetadataTableError
from airflow_hudi_maint.core.storage.file_records import read_file_records
from airflow_hudi_maint.core.storage.hfile import GZIP, NONE, TRAILER_BYTES, HFile
from tests.property.histories import PARTITIONS, History
from tests.unit.core.storage.mdt_writer import FILES, Record, hfile

_MEMORY_BYTES = 32 * 2**20

_RECORDS: list[Record] = [(f"day={number}", {f"file-{number}": number, "gone": None}) for number in range(40)]
_SOUND = {codec: hfile(_RECORDS, codec=codec, per_block=7) for codec in (GZIP, NONE)}

damages = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True), st.integers(1, 255), st.sampled_from(("flip", "cut", "insert", "drop"))
    ),
    min_size=1,
    max_size=6,
)


def _damaged(data: bytes, damage: list[tuple[float, int, str]]) -> bytes:
    harmed = bytearray(data)
    for share, byte, kind in damage:
        at = int(share * len(harmed))
        if kind == "cut":
            del harmed[at:]
        elif kind == "drop":
            del harmed[at : at + byte]
        elif kind == "insert":
            harmed[at:at] = bytes([byte]) * byte
        elif at < len(harmed):
            harmed[at] ^= byte
    return bytes(harmed)


def _read(data: bytes, *, schema: bytes | None = None) -> None:
    with suppress(CorruptTableError):
        for _ in read_file_records(HFile.open(data, name="t.hfile"), schema=schema):
            pass


@pytest.mark.parametrize("codec", [GZIP, NONE])
@given(damage=damages, where=st.sampled_from(("file", "trailer")))
def test_damaged_hfiles_raise_nothing_but_our_own(codec: int, damage: list[tuple[float, int, str]], where: str) -> None:
    """Anywhere in the file, or in the few bytes of its trailer that say where everything is."""
    sound = _SOUND[codec]
    split = len(sound) - TRAILER_BYTES
    end = split + 40
    data = _damaged(sound, damage)
    if where == "trailer":
        data = sound[:split] + _damaged(sound[split:end], damage) + sound[end:]
    tracemalloc.start()
    try:
        _read(data)
        assert tracemalloc.get_traced_memory()[1] < _MEMORY_BYTES
    finally:
        tracemalloc.stop()


@given(data=st.binary(max_size=400), schema=st.one_of(st.none(), st.binary(max_size=60)))
def test_random_bytes_raise_nothing_but_our_own(data: bytes, schema: bytes | None) -> None:
    """As a file, as its blocks before a sound trailer, and as a schema."""
    _read(data)
    _read(data + _SOUND[NONE][-TRAILER_BYTES:])
    _read(_SOUND[GZIP], schema=schema)


@pytest.mark.parametrize("version", [6, 9])
@given(damage=damages, choice=st.integers(0, 20))
def test_damaged_metadata_tables_are_refused_or_right(
    version: int, damage: list[tuple[float, int, str]], choice: int
) -> None:
    """Any one file of the ``files`` partition: what is read in spite of the damage is what was written."""
    folder = f"damaged-{uuid.uuid4().hex}"
    history = History(base_path=f"memory://{folder}/trips", version=version, merge_on_read=True, partitions=PARTITIONS)
    try:
        history.make_metadata()
        for number in range(3):
            history.upsert(number, number)
        table = history.table()
        timeline = table.timeline()
        sound = dict(table.listed(timeline, listing="metadata").listings)
        names = sorted(history.storage.names(FILES))
        path = f"{FILES}/{names[choice % len(names)]}"
        history.builder.put(path, _damaged(history.storage.read_bytes(path), damage))
        with suppress(CorruptTableError, MetadataTableError):
            assert dict(table.listed(timeline, listing="metadata").listings) == sound
    finally:
        fsspec.filesystem("memory").rm(f"/{folder}", recursive=True)
