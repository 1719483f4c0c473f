"""Check a merged file against its inputs before anything is moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import VerificationError
from airflow_hudi_maint.core.merging.orc import conformed, stripes
from airflow_hudi_maint.core.merging.text import MergedText, text_digest
from airflow_hudi_maint.core.model.merge_settings import Codec
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_hudi_maint.core.merging.parquet_facts import ColumnFacts


_SHOWN = 10


def verify_text(storage: Storage, path: str, *, merged: MergedText, codec: Codec) -> None:
    """Raise VerificationError unless the file holds exactly the bytes that the inputs' rows are made of.

    What :func:`~airflow_hudi_maint.core.merging.text.merge_text` compared byte by byte, as it wrote it, has to have
    its size; any other is read again and compared by a digest of what was read before.
    """
    if merged.digest is None:
        _check_size(storage, path, expected=merged.bytes)
        return
    found = text_digest(storage, path, codec=codec)
    if found != merged.digest:
        raise VerificationError(
            f"{storage.join(path)} holds other bytes than its inputs (SHA-256 {found[:12]}… against "
            f"{merged.digest[:12]}…); nothing was moved, and the inputs are as they were"
        )


def _check_size(storage: Storage, path: str, *, expected: int) -> None:
    folder, _, name = path.rpartition("/")
    entry = storage.look(folder, [name]).get(name)
    size = None if entry is None else entry.bytes
    if size != expected:
        raise VerificationError(f"{storage.join(path)} has {size} bytes, and should have {expected}; nothing was moved")


def verify_orc(storage: Storage, path: str, *, size: int, inputs: Sequence[tuple[str, int]]) -> None:
    """Raise VerificationError unless the rows of the file are those of the inputs, in their order, value by value."""
    merged = stripes(storage, path, size=size)
    rest: pa.RecordBatch | None = None
    position = 0
    for name, bytes_ in inputs:
        for expected in stripes(storage, name, size=bytes_):
            at = 0
            while at < len(expected):
                if rest is None or not len(rest):
                    rest = next(merged, None)
                    if rest is None:
                        raise VerificationError(_differs(storage, path, position, name))
                    continue
                count = min(len(rest), len(expected) - at)
                ours = conformed(expected.slice(at, count), schema=rest.schema)
                if not _is_equal(rest.slice(0, count), ours):
                    raise VerificationError(_differs(storage, path, position, name))
                rest, at, position = rest.slice(count), at + count, position + count
    if (rest is not None and len(rest)) or any(len(one) for one in merged):
        raise VerificationError(f"{storage.join(path)} has more rows than its inputs ({position}); nothing was moved")


def verify_parquet(storage: Storage, path: str, *, inputs: Sequence[str]) -> None:
    """Raise VerificationError unless footers agree on rows, columns, and by column on values, nulls and their range.

    Nulls and the range of a column are compared where every footer tells.
    """
    from airflow_hudi_maint.core.merging.parquet_facts import parquet_facts

    merged = parquet_facts(storage, path)
    facts = storage.concurrently(lambda one: parquet_facts(storage, one), inputs)
    rows = sum(one.rows for one in facts)
    if merged.rows != rows:
        raise VerificationError(
            f"{storage.join(path)} has {merged.rows} rows, and its {len(inputs)} inputs have {rows}; nothing was moved"
        )
    lost = sorted({name for one in facts for name in one.columns} - set(merged.columns))
    if lost:
        raise VerificationError(
            f"{storage.join(path)} lacks what its inputs have: column {', '.join(lost[:_SHOWN])}; nothing was moved"
        )
    for name, found in merged.columns.items():
        values = sum(one.columns[name].values if name in one.columns else one.rows for one in facts)
        if found.values != values:
            raise VerificationError(
                f"Column {name!r} of {storage.join(path)} has {found.values} values, and that of its inputs {values}; "
                "nothing was moved"
            )
        ours = [(one.columns.get(name), one.rows) for one in facts]
        nulls = [rows if column is None else column.null_count for column, rows in ours]
        known = [one for one in nulls if one is not None]
        if found.null_count is not None and len(known) == len(nulls) and sum(known) != found.null_count:
            raise VerificationError(
                f"Column {name!r} of {storage.join(path)} has {found.null_count} nulls, and that of its inputs "
                f"{sum(known)}; nothing was moved"
            )
        _check_range(
            storage, path, name, found=found, ours=[(column, rows) for column, rows in ours if column and rows]
        )


def _check_range(
    storage: Storage, path: str, name: str, *, found: ColumnFacts, ours: Sequence[tuple[ColumnFacts, int]]
) -> None:
    for word, pick in (("least", min), ("greatest", max)):
        values: list[Any] = [getattr(one, word) for one, _ in ours if getattr(one, word) is not None]
        value = getattr(found, word)
        untold = any(getattr(one, word) is None and one.null_count != rows for one, rows in ours)
        if value is None or not values or untold:
            continue
        try:
            expected = pick(values)
        except TypeError:  # a column that became wider tells its values in two types
            continue
        if isinstance(value, bytes):  # some writers shorten long ones, but never so that a value lies outside
            is_other = value < expected if word == "least" else value > expected
        else:
            is_other = expected != value
        if is_other:
            raise VerificationError(
                f"The {word} value of column {name!r} in {storage.join(path)} is {value!r}, and that of its inputs "
                f"{expected!r}; nothing was moved"
            )


def _is_equal(one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
    if one.equals(other):
        return True
    # NaN is not equal to itself for Arrow; its text is.
    return all(
        left.equals(right) or repr(left.to_pylist()) == repr(right.to_pylist())
        for left, right in zip(_columns(one), _columns(other), strict=True)
    )


def _columns(batch: pa.RecordBatch) -> Iterator[Any]:
    return iter(batch.columns)


def _differs(storage: Storage, path: str, position: int, name: str) -> str:
    return (
        f"{storage.join(path)} differs from its input {storage.join(name)} after row {position}; nothing was moved, "
        "and the inputs are as they were"
    )
