"""The schema under which values are decoded and encoded again: how they are stored, not what they mean.

A merged file keeps the schema of its inputs element by element, so that field ids, logical types, old ways to write a
list and types that pyarrow does not know survive. What pyarrow reads and writes in between are plain numbers, bytes,
structs and lists: it converts nothing, so it loses nothing (it would turn an int96 timestamp of the year 3000 into
another, for one). Only where the order of the values, hence their minimum and maximum, hangs on the meaning, that is
left on: unsigned integers, half floats, and decimals in fixed bytes of the length that pyarrow gives them itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.merging.parquet_footer import NUM_ROWS, ROW_GROUPS, SCHEMA, file_metadata
from airflow_hudi_maint.core.merging.parquet_types import (
    BYTE_ARRAY,
    FIXED,
    INT96,
    REPEATED,
    SchemaNode,
    meaning_fields,
    plain_element,
)
from airflow_hudi_maint.core.merging.thrift_compact import (
    I32,
    I64,
    LIST,
    STRUCT,
    Struct,
    field_header,
    list_header,
    struct_bytes,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import FileMetaData

_INT96_BYTES = 12
_ARROW_SCHEMA_KEY, _HIDDEN_KEY = b"ARROW:schema", b"ARROW-schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalLeaf:
    """A leaf column: whether a minimum and maximum that pyarrow computes over the stored values hold for its type."""

    path: tuple[bytes, ...]
    node: SchemaNode
    has_order: bool


def physical_leaves(root: SchemaNode) -> tuple[PhysicalLeaf, ...]:
    """The leaf columns of a schema, in order."""
    return tuple(
        PhysicalLeaf(path=path, node=node, has_order=_has_order(node))
        for column in root.children
        for path, node in column.leaves()
    )


def physical_prefix(root: SchemaNode, *, names: Sequence[int]) -> bytes:
    """The first bytes of a footer with the physical schema, where column ``i`` is called ``c{names[i]}``."""
    elements = [plain_element(name="schema", repetition=None, physical_type=None, children=len(root.children))]
    for column, name in zip(root.children, names, strict=True):
        _add(elements, column, name=f"c{name}")
    parts = [field_header(I32, number=1, after=0), b"\x04", field_header(LIST, number=2, after=1)]
    return b"".join([*parts, list_header(STRUCT, count=len(elements)), *map(struct_bytes, elements)])


def with_prefix(footer: bytes, *, original: bytes, prefix: bytes) -> FileMetaData:
    """A footer for pyarrow, with the physical schema in place of its own, and without what pyarrow would add to that.

    The Arrow schema in the key-values would be applied to columns that it does not fit, so its key is altered.
    """
    return file_metadata(prefix + footer[len(original) :].replace(_ARROW_SCHEMA_KEY, _HIDDEN_KEY))


def empty_metadata(prefix: bytes) -> FileMetaData:
    """The footer of a file without rows, as pyarrow sees it."""
    no_rows = field_header(I64, number=NUM_ROWS, after=SCHEMA) + b"\x00"
    no_groups = field_header(LIST, number=ROW_GROUPS, after=NUM_ROWS) + list_header(STRUCT, count=0)
    return file_metadata(prefix + no_rows + no_groups + b"\x00")


def _add(elements: list[Struct], node: SchemaNode, *, name: str) -> None:
    if node.physical_type is None:
        group = plain_element(name=name, repetition=node.repetition, physical_type=None, children=len(node.children))
        elements.append(group)
        for place, child in enumerate(node.children):
            _add(elements, child, name=f"c{place}")
        return
    is_int96 = node.physical_type == INT96
    stored = plain_element(
        name=name,
        repetition=node.repetition,
        physical_type=FIXED if is_int96 else node.physical_type,
        type_length=_INT96_BYTES if is_int96 else node.type_length,
    )
    if _keeps_meaning(node):
        stored.update(meaning_fields(node.element))
    elements.append(stored)


def _keeps_meaning(node: SchemaNode) -> bool:
    name = node.annotation[0] if node.annotation else None
    if name == "integer":
        return not node.annotation[2]
    if name == "decimal" and node.physical_type == FIXED:
        return node.type_length == _decimal_bytes(int(str(node.annotation[1])))
    return name == "float16" and node.physical_type == FIXED


def _has_order(node: SchemaNode) -> bool:
    name = node.annotation[0] if node.annotation else None
    if node.physical_type == INT96 or name == "interval" or (isinstance(name, str) and " type " in name):
        return False
    return not (name == "decimal" and node.physical_type in (BYTE_ARRAY, FIXED)) or _keeps_meaning(node)


def _decimal_bytes(precision: int) -> int:
    """The least bytes that hold a signed number of so many decimal digits."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def is_flat(node: SchemaNode) -> bool:
    """Whether a column is a leaf by itself, with at most one value in each row."""
    return node.physical_type is not None and node.repetition != REPEATED


def physical_arrow_schema(prefix: bytes) -> pa.Schema:
    """The Arrow schema of the physical schema."""
    return empty_metadata(prefix).schema.to_arrow_schema()
