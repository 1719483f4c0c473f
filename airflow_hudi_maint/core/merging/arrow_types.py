"""What Arrow's own schema in a footer says beyond the Parquet types, and whether that holds for rows of other files.

Parquet stores a duration as a whole number without its unit, a list of a fixed size as any list, and a dictionary type
by its values alone. Readers of Arrow go by the schema in the footer, so that of one file must be true of all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from airflow_hudi_maint.core.errors import SchemaConflictError

if TYPE_CHECKING:
    import pyarrow as pa

_Meaning: TypeAlias = "tuple[object, ...]"
_LEAST_INDEX_BITS = 32


def check_meanings(schemas: Mapping[str, pa.Schema], *, without: str | None) -> None:
    """Raise SchemaConflictError when Arrow would read a column of one file as another type than that of another.

    ``schemas`` are by the first file that has them; ``without`` is a file that has none.
    """
    found: dict[str, tuple[str, pa.DataType]] = {}
    for file, schema in schemas.items():
        for field in schema:
            meaning = _meaning(field.type)
            if meaning and without is not None:
                raise _conflict(field.name, file, str(field.type), without, "not said to be so")
            other_file, other = found.setdefault(field.name, (file, field.type))
            if _meaning(other) != meaning:
                raise _conflict(field.name, file, str(field.type), other_file, str(other))


def roomy(type_: pa.DataType) -> pa.DataType:
    """The type with indexes of dictionaries that have room for the values of all files.

    >>> import pyarrow as pa
    >>> str(roomy(pa.dictionary(pa.int8(), pa.string())))
    'dictionary<values=string, indices=int32, ordered=0>'
    """
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(type_) and type_.index_type.bit_width < _LEAST_INDEX_BITS:
        return pa.dictionary(pa.int32(), type_.value_type, ordered=type_.ordered)
    if types.is_list(type_):
        return pa.list_(_roomy_field(type_.value_field))
    if types.is_large_list(type_):
        return pa.large_list(_roomy_field(type_.value_field))
    if types.is_struct(type_):
        return pa.struct([_roomy_field(type_.field(place)) for place in range(type_.num_fields)])
    return type_


def _roomy_field(field: pa.Field) -> pa.Field:
    return field.with_type(roomy(field.type))


def _meaning(type_: pa.DataType) -> _Meaning:
    """What only Arrow's schema tells of a type; empty where Parquet's tells enough."""
    import pyarrow as pa
    from pyarrow import types

    if isinstance(type_, pa.BaseExtensionType):
        return _meaning(type_.storage_type)
    if types.is_dictionary(type_):
        return _meaning(type_.value_type)
    if types.is_duration(type_):
        return ("duration", type_.unit)
    inner = tuple(
        (place, meaning) for place in range(type_.num_fields) if (meaning := _meaning(type_.field(place).type))
    )
    if types.is_fixed_size_list(type_):
        return ("fixed size", type_.list_size, *inner)
    return inner


def _conflict(name: str, file: str, type_: str, other_file: str, other: str) -> SchemaConflictError:
    return SchemaConflictError(
        f"Column {name!r} is {type_} in {file} and {other} in {other_file}: Parquet stores both alike, and the merged "
        "file can say only one of them, which readers would take for true of all rows. Merge these files apart, or "
        "write one of them again with the other's types"
    )
