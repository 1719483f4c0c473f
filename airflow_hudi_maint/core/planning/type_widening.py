"""Whether a column's type may have become another one by the changes that Hudi lets a table's schema make.

Types are texts as :class:`~.model.file_facts.FileFacts` has them: ``record<a:int,b:array<string>>``, ``decimal(10,2)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

_PROMOTIONS = {
    "int": ("long", "float", "double", "string"),
    "long": ("float", "double", "string"),
    "float": ("double", "string"),
    "double": ("string",),
    "date": ("string",),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""The changes of a column's type that Hudi lets a table's schema make; an older file keeps the older type."""


def may_become(old: str, new: str, *, name: str = "", columns: Collection[str] = ()) -> bool:
    """Whether a column of type ``old`` may be of type ``new`` in a later file.

    Fields of a record are compared one by one: a field may come, may widen, and may go where ``columns`` (the table's,
    nested ones with dots; ``name`` is this one's) has other fields of the record and not this one.

    >>> may_become("int", "long"), may_become("long", "int")
    (True, False)
    >>> may_become("record<a:int>", "record<a:long,b:string>"), may_become("record<a:int>", "record<a:bytes,b:int>")
    (True, False)
    """
    if old == new or new in _PROMOTIONS.get(old, ()):
        return True
    if old.startswith("decimal(") and new.startswith("decimal("):
        (old_digits, old_scale), (new_digits, new_scale) = (_decimal(text) for text in (old, new))
        return new_scale >= old_scale and new_digits - new_scale >= old_digits - old_scale
    (old_kind, old_parts), (new_kind, new_parts) = _parts(old), _parts(new)
    if old_kind != new_kind or not old_parts:
        return False
    if old_kind != "record":
        return len(old_parts) == len(new_parts) and all(
            may_become(before, after) for before, after in zip(old_parts, new_parts, strict=True)
        )
    before, after = (dict(_field(part) for part in parts) for parts in (old_parts, new_parts))
    gone = before.keys() - after.keys()
    return all(_is_dropped(f"{name}.{field}", columns=columns) for field in gone) and all(
        may_become(kind, after[field], name=f"{name}.{field}", columns=columns)
        for field, kind in before.items()
        if field in after
    )


def _is_dropped(path: str, *, columns: Collection[str]) -> bool:
    """Whether the table has other fields beside this one, but not it."""
    beside = f"{path.rpartition('.')[0]}."
    return path not in columns and any(one.startswith(beside) for one in columns)


def _decimal(text: str) -> tuple[int, int]:
    digits, scale = text.removeprefix("decimal(").removesuffix(")").split(",")
    return int(digits), int(scale)


def _parts(text: str) -> tuple[str, list[str]]:
    """The kind of a nested type, and the texts between its brackets; no parts for one that is not nested."""
    kind, bracket, inner = text.partition("<")
    return (kind, list(_split(inner.removesuffix(">")))) if bracket else (text, [])


def _split(text: str) -> Iterator[str]:
    """The parts of a text between those commas that stand in no bracket."""
    depth = start = 0
    for at, letter in enumerate(text):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            yield text[start:at]
            start = at + 1
    if text:
        yield text[start:]


def _field(text: str) -> tuple[str, str]:
    name, _, kind = text.partition(":")
    return name, kind
