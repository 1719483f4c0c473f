"""One element of a Parquet schema, as a value: what it stores, what that means, and what is below it.

Codes are those of ``parquet.thrift``: ``Type``, ``FieldRepetitionType``, ``ConvertedType`` and ``LogicalType``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.thrift_compact import BINARY, I32, STRUCT, Struct, struct_bytes

BOOLEAN, INT32, INT64, INT96, FLOAT, DOUBLE, BYTE_ARRAY, FIXED = range(8)
REQUIRED, OPTIONAL, REPEATED = range(3)
TYPE_NAMES = ("boolean", "int32", "int64", "int96", "float", "double", "byte array", "fixed")

# SchemaElement
_TYPE, _LENGTH, _REPETITION, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _FIELD_ID, _LOGICAL = range(1, 11)

Annotation = tuple[object, ...]
"""What the stored values mean: a name and its parameters, as ``("decimal", 10, 2)``; empty for nothing beyond them."""

_UNITS = {1: "ms", 2: "us", 3: "ns"}
_LOGICAL_NAMES = {
    1: "string",
    2: "map",
    3: "list",
    4: "enum",
    6: "date",
    11: "null",
    12: "json",
    13: "bson",
    14: "uuid",
    15: "float16",
}
_CONVERTED_NAMES: dict[int, Annotation] = {
    0: ("string",),
    1: ("map",),
    2: ("map",),
    3: ("list",),
    4: ("enum",),
    6: ("date",),
    7: ("time", "ms", True),
    8: ("time", "us", True),
    9: ("timestamp", "ms", True),
    10: ("timestamp", "us", True),
    19: ("json",),
    20: ("bson",),
    21: ("interval",),
    **{11 + step: ("integer", 8 << step, False) for step in range(4)},
    **{15 + step: ("integer", 8 << step, True) for step in range(4)},
}
_SAME_AS_NONE: dict[int, Annotation] = {INT32: ("integer", 32, True), INT64: ("integer", 64, True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaNode:
    """An element with those below it; ``physical_type`` is None for a group. ``element`` is the original, whole."""

    element: Struct
    name: str
    repetition: int
    physical_type: int | None
    type_length: int
    annotation: Annotation
    field_id: int | None
    children: tuple[SchemaNode, ...] = ()

    def leaves(self, above: tuple[bytes, ...] = ()) -> Iterator[tuple[tuple[bytes, ...], SchemaNode]]:
        """The leaf columns below, or the node itself, each with its path."""
        path = (*above, self.element[_NAME][1])
        if self.physical_type is not None:
            yield path, self
        for child in self.children:
            yield from child.leaves(path)

    def flat(self) -> Iterator[Struct]:
        """The elements in the order of a footer."""
        yield self.element
        for child in self.children:
            yield from child.flat()

    def with_children(self, children: tuple[SchemaNode, ...]) -> SchemaNode:
        """The same group with other nodes below it."""
        return replace(self, element={**self.element, _CHILDREN: (I32, len(children))}, children=children)

    def optional(self) -> SchemaNode:
        """The same, but nullable."""
        return replace(self, element={**self.element, _REPETITION: (I32, OPTIONAL)}, repetition=OPTIONAL)

    def numbered(self, field_id: int) -> SchemaNode:
        """The same with a field id."""
        return replace(self, element={**self.element, _FIELD_ID: (I32, field_id)}, field_id=field_id)

    def __str__(self) -> str:
        """The node in words, as messages show it."""
        nullable = {REQUIRED: "required", OPTIONAL: "optional", REPEATED: "repeated"}.get(self.repetition, "?")
        if self.physical_type is None:
            stored = f"group({', '.join(f'{one.name}: {one}' for one in self.children)})"
        else:
            stored = TYPE_NAMES[self.physical_type]
            stored += f"({self.type_length})" if self.physical_type == FIXED else ""
        meaning = f" as {_meaning(self.annotation)}" if self.annotation else ""
        return f"{nullable} {stored}{meaning}"


def schema_tree(elements: Sequence[Struct], *, name: str) -> SchemaNode:
    """The tree of a footer's flat list. Raises UnreadableFileError, with ``name``, where the counts do not fit."""
    try:
        root, behind = _node(elements, 0, depth=0)
    except (IndexError, KeyError, RecursionError, UnicodeDecodeError, TypeError) as error:
        raise UnreadableFileError(f"{name} has a Parquet schema that cannot be understood: {error!r}") from error
    if behind != len(elements):
        raise UnreadableFileError(f"{name} has a Parquet schema with {len(elements) - behind} elements too many")
    return root


def plain_element(
    *,
    name: str,
    repetition: int | None,
    physical_type: int | None,
    type_length: int = 0,
    children: int = 0,
) -> Struct:
    """An element that says how values are stored, and nothing of what they mean."""
    element: Struct = {}
    if physical_type is not None:
        element[_TYPE] = (I32, physical_type)
    if physical_type == FIXED:
        element[_LENGTH] = (I32, type_length)
    if repetition is not None:
        element[_REPETITION] = (I32, repetition)
    element[_NAME] = (BINARY, name.encode())
    if physical_type is None:
        element[_CHILDREN] = (I32, children)
    return element


def meaning_fields(element: Struct) -> Struct:
    """The fields of an element that say what its values mean."""
    return {number: value for number, value in element.items() if number in (_CONVERTED, _SCALE, _PRECISION, _LOGICAL)}


def _node(elements: Sequence[Struct], at: int, *, depth: int) -> tuple[SchemaNode, int]:
    element = elements[at]
    at += 1
    count = element.get(_CHILDREN, (I32, 0))[1]
    physical = element[_TYPE][1] if _TYPE in element else None
    if physical is not None and not 0 <= physical < len(TYPE_NAMES):
        raise KeyError(f"type {physical}")
    children = []
    for _ in range(count if physical is None else 0):
        child, at = _node(elements, at, depth=depth + 1)
        children.append(child)
    node = SchemaNode(
        element=element,
        name=element[_NAME][1].decode(),
        repetition=element.get(_REPETITION, (I32, REQUIRED))[1],
        physical_type=physical,
        type_length=element.get(_LENGTH, (I32, 0))[1],
        annotation=_annotation(element, physical),
        field_id=element[_FIELD_ID][1] if _FIELD_ID in element else None,
        children=tuple(children),
    )
    return node, at


def _annotation(element: Struct, physical: int | None) -> Annotation:
    """Older writers give only the converted type, newer ones both or only the logical one: they are told as one."""
    found: Annotation = ()
    if _LOGICAL in element and element[_LOGICAL][1]:
        found = _logical(element[_LOGICAL][1])
    elif _CONVERTED in element:
        found = _converted(element)
    return () if physical is not None and found == _SAME_AS_NONE.get(physical) else found


def _logical(union: Struct) -> Annotation:
    number, (kind, value) = next(iter(union.items()))
    if number in _LOGICAL_NAMES:
        return (_LOGICAL_NAMES[number],)
    if number == 5:  # noqa: PLR2004 LogicalType.DECIMAL
        return ("decimal", value[2][1], value[1][1])
    if number in (7, 8):
        return ("time" if number == 7 else "timestamp", _UNITS[next(iter(value[2][1]))], bool(value[1][1]))  # noqa: PLR2004
    if number == 10:  # noqa: PLR2004 LogicalType.INTEGER
        return ("integer", value[1][1], bool(value[2][1]))
    return (f"logical type {number}", struct_bytes({1: (kind, value)}) if kind == STRUCT else value)


def _converted(element: Struct) -> Annotation:
    code = element[_CONVERTED][1]
    if code == 5:  # noqa: PLR2004 ConvertedType.DECIMAL
        return ("decimal", element[_PRECISION][1], element.get(_SCALE, (I32, 0))[1])
    return _CONVERTED_NAMES.get(code, (f"converted type {code}",))


def _meaning(annotation: Annotation) -> str:
    name, *parameters = annotation
    if name in ("time", "timestamp"):
        unit, is_utc = parameters
        return f"{name}({unit}, {'UTC' if is_utc else 'without zone'})"
    if name == "integer":
        bits, is_signed = parameters
        return f"{'' if is_signed else 'u'}int{bits}"
    shown = ", ".join(str(one) for one in parameters if not isinstance(one, bytes))
    return f"{name}({shown})" if shown else str(name)
