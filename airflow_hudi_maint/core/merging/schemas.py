"""One schema for several Parquet files: columns are matched by name, and only safe promotions are made.

Safe are: a plain int32 column that is int64 elsewhere, a nullable column that some files lack, and a column that is
required in some files and nullable in others. Anything else is refused with both files, the field, and what differs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.errors import SchemaConflictError
from airflow_hudi_maint.core.merging.parquet_types import INT32, INT64, OPTIONAL, REQUIRED, SchemaNode

_SHOWN_FIELDS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSchema:
    """The schema of a file; ``file`` is the first that has it, for messages."""

    file: str
    root: SchemaNode


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedSchema:
    """The schema of the merged file.

    ``sources`` has, for each of the schemas that went in, the place of each merged column in it, None where it lacks
    the column. ``is_same`` says of each whether its files' columns can be taken as they lie; ``changes`` has the
    promotions in words, ``widened`` the columns that became int64.
    """

    root: SchemaNode
    sources: tuple[tuple[int | None, ...], ...]
    is_same: tuple[bool, ...]
    changes: tuple[str, ...]
    widened: frozenset[str] = frozenset()


def unify_schemas(schemas: Sequence[NamedSchema]) -> UnifiedSchema:
    """Join schemas, at least one, in the order of their files; the columns of the first come first.

    Raises SchemaConflictError for columns that no safe promotion joins, and for a name that a file has twice where the
    schemas differ: which of the two is meant, nobody knows.
    """
    root = schemas[0].root
    if all(_columns_are_equal(root, other.root) for other in schemas[1:]):
        for other in schemas[1:]:
            columns = zip(root.children, other.root.children, strict=True)
            root = replace(root, children=tuple(_with_field_ids(one, from_=same) for one, same in columns))
        every = tuple(range(len(root.children)))
        return UnifiedSchema(root=root, sources=(every,) * len(schemas), is_same=(True,) * len(schemas), changes=())
    return _joined(schemas)


def _joined(schemas: Sequence[NamedSchema]) -> UnifiedSchema:
    places = [_places(one) for one in schemas]
    columns: dict[str, SchemaNode] = {}
    origin: dict[str, NamedSchema] = {}
    for schema, own in zip(schemas, places, strict=True):
        for name, place in own.items():
            node = schema.root.children[place]
            joined = _promoted(columns[name], node) if name in columns else node
            if joined is None:
                raise _conflict(origin[name], schema, field=name)
            columns[name] = joined
            origin.setdefault(name, schema)
    _refuse_names_by_case(columns, places, schemas=schemas)
    _refuse_renamed(columns, origin)
    for name, column in columns.items():
        lacking = [one for one, own in zip(schemas, places, strict=True) if name not in own]
        if lacking and column.repetition != OPTIONAL:
            raise _conflict(origin[name], lacking[0], field=name)
    root = schemas[0].root.with_children(tuple(columns.values()))
    return UnifiedSchema(
        root=root,
        sources=tuple(tuple(own.get(name) for name in columns) for own in places),
        is_same=tuple(_columns_are_equal(root, one.root) for one in schemas),
        changes=_changes(schemas, places, columns),
        widened=frozenset(
            name
            for name, column in columns.items()
            if any(
                name in own and one.root.children[own[name]].physical_type != column.physical_type
                for one, own in zip(schemas, places, strict=True)
            )
        ),
    )


def _refuse_names_by_case(
    columns: Iterable[str], places: Sequence[Mapping[str, int]], *, schemas: Sequence[NamedSchema]
) -> None:
    """Spark and Hive, which heed no case, read such columns as one, and a file that has both not at all."""
    known: dict[str, str] = {}
    for name in columns:
        other = known.setdefault(name.casefold(), name)
        if other == name or any(name in own and other in own for own in places):
            continue
        first, second = (
            next(one.file for one, own in zip(schemas, places, strict=True) if each in own) for each in (other, name)
        )
        raise SchemaConflictError(
            f"Column {other!r} of {first} and column {name!r} of {second} differ by case alone: one file with both "
            "cannot be read by Spark or Hive, which take them for one. Rename one of them, or merge these files apart"
        )


def _refuse_renamed(columns: Mapping[str, SchemaNode], origin: Mapping[str, NamedSchema]) -> None:
    """Iceberg and others go by field ids: one file must not have the same id twice."""
    known: dict[int, str] = {}
    for name, column in columns.items():
        if column.field_id is None:
            continue
        other = known.setdefault(column.field_id, name)
        if other != name and origin[other] is not origin[name]:
            raise SchemaConflictError(
                f"Column {other!r} of {origin[other].file} and column {name!r} of {origin[name].file} have one field "
                f"id ({column.field_id}): the column was renamed. Merge these files apart"
            )


def _places(schema: NamedSchema) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, column in enumerate(schema.root.children):
        if column.name in places:
            raise SchemaConflictError(
                f"{schema.file} has two columns called {column.name!r}, and other files have another schema: columns "
                "are matched by name, which cannot tell these two apart; merge files of one schema at a time"
            )
        places[column.name] = place
    return places


def _changes(
    schemas: Sequence[NamedSchema], places: Sequence[dict[str, int]], columns: dict[str, SchemaNode]
) -> tuple[str, ...]:
    changes = []
    for name, column in columns.items():
        had = [one.root.children[own[name]] for one, own in zip(schemas, places, strict=True) if name in own]
        if any(one.physical_type != column.physical_type for one in had):
            changes.append(f"{name}: int32 became int64")
        if any(one.repetition != column.repetition for one in had):
            changes.append(f"{name}: required became nullable")
        if len(had) < len(schemas):
            changes.append(f"{name}: null in files that lack it")
    return tuple(changes)


def _promoted(one: SchemaNode, other: SchemaNode) -> SchemaNode | None:
    if _is_equal(one, other):
        return _with_field_ids(one, from_=other)
    if not _ids_agree(one, other) or not {one.repetition, other.repetition} <= {REQUIRED, OPTIONAL}:
        return None
    nullable = OPTIONAL in (one.repetition, other.repetition)
    left, right = (one.optional(), other.optional()) if nullable else (one, other)
    if {one.physical_type, other.physical_type} == {INT32, INT64} and not one.annotation and not other.annotation:
        wide, narrow = (left, right) if one.physical_type == INT64 else (right, left)
        return wide.numbered(narrow.field_id) if wide.field_id is None and narrow.field_id is not None else wide
    return _with_field_ids(left, from_=right) if _is_equal(left, right) else None


def _columns_are_equal(one: SchemaNode, other: SchemaNode) -> bool:
    """Whether two roots have equal columns in the same order; the name of a root means nothing."""
    return len(one.children) == len(other.children) and all(
        _is_equal(a, b) for a, b in zip(one.children, other.children, strict=True)
    )


def _is_equal(one: SchemaNode, other: SchemaNode, *, unnamed_levels: int = 0) -> bool:
    """Whether values are stored alike and mean the same; a field id that only one of them has is no difference.

    What is inside a list or a map is called differently by different writers and means the same: the names of the
    first ``unnamed_levels`` are not compared.
    """
    below = 2 if _is_wrapper(one) and _is_wrapper(other) else max(unnamed_levels - 1, 0)
    return (
        one.physical_type == other.physical_type
        and one.type_length == other.type_length
        and one.repetition == other.repetition
        and one.annotation == other.annotation
        and (unnamed_levels > 0 or one.name == other.name)
        and _ids_agree(one, other)
        and len(one.children) == len(other.children)
        and all(_is_equal(a, b, unnamed_levels=below) for a, b in zip(one.children, other.children, strict=True))
    )


def _is_wrapper(node: SchemaNode) -> bool:
    """Whether a node is a list or a map in the layout of three levels, where the names inside mean nothing.

    By the format's rules for old writers, a repeated group called ``array`` or ``…_tuple`` is an element itself.
    """
    if node.annotation not in (("list",), ("map",)) or len(node.children) != 1:
        return False
    inside = node.children[0]
    if inside.physical_type is not None or inside.name == "array" or inside.name.endswith("_tuple"):
        return False
    return len(inside.children) == (1 if node.annotation == ("list",) else 2)


def _ids_agree(one: SchemaNode, other: SchemaNode) -> bool:
    return one.field_id is None or other.field_id is None or one.field_id == other.field_id


def _with_field_ids(node: SchemaNode, *, from_: SchemaNode) -> SchemaNode:
    children = tuple(
        _with_field_ids(one, from_=other) for one, other in zip(node.children, from_.children, strict=True)
    )
    node = replace(node, children=children)
    return node if node.field_id is not None or from_.field_id is None else node.numbered(from_.field_id)


def _conflict(one: NamedSchema, other: NamedSchema, *, field: str) -> SchemaConflictError:
    ours = {column.name: _told(column) for column in one.root.children}
    theirs = {column.name: _told(column) for column in other.root.children}
    differing = [name for name in (*ours, *(set(theirs) - set(ours))) if ours.get(name) != theirs.get(name)]
    differing = [field, *sorted(name for name in differing if name != field)]
    return SchemaConflictError(
        f"Column {field!r} is {ours.get(field, 'absent')} in {one.file} "
        f"and {theirs.get(field, 'absent')} in {other.file}; "
        "only int32 to int64, and nullable columns that some files lack, are joined. "
        f"What differs in {one.file}: {_shown(ours, differing)}; in {other.file}: {_shown(theirs, differing)}. "
        "Merge the files of each schema apart, or write one of them again with the other's types"
    )


def _told(column: SchemaNode) -> str:
    return str(column) if column.field_id is None else f"{column} (field id {column.field_id})"


def _shown(columns: dict[str, str], names: Sequence[str]) -> str:
    shown = [f"{name}: {columns.get(name, 'absent')}" for name in names[:_SHOWN_FIELDS]]
    more = len(names) - len(shown)
    return "{" + "; ".join(shown) + (f"; and {more} more" if more > 0 else "") + "}"
