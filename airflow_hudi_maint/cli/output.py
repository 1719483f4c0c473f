"""Print rows and records in the forms of Airflow's ``--output``.

``json`` and ``yaml`` have raw values: bytes as whole numbers, null for what is not known. ``plain`` has the same as
text, a row a line, for other programs; ``table`` has them as people read them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from airflow_hudi_maint.cli.moments import short
from airflow_hudi_maint.core.model.document import Json, JsonMapping
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count

if TYPE_CHECKING:
    from argparse import Namespace

Words: TypeAlias = Mapping[str, Callable[..., str]]
"""How a column's value is written for people, by the column's name; what is not here goes by :func:`_usual_word`."""

UNKNOWN = "–"
_DEFAULT_TABLE_ROWS = 20

_Row = TypeVar("_Row")


def limited(rows: Sequence[_Row], args: Namespace) -> Sequence[_Row]:
    """The first rows, as many as ``--limit`` says; a line on stderr tells when that is not all of them.

    Without it a table is cut to what a person reads, and what goes to a program is not cut at all.
    """
    limit = args.limit if args.limit is not None else _DEFAULT_TABLE_ROWS if args.output == "table" else 0
    if not limit or len(rows) <= limit:
        return rows
    print(f"Showing {limit} of {counted(len(rows), 'row')}; --limit 0 shows all", file=sys.stderr)  # noqa: T201
    return rows[:limit]


def print_rows(rows: Sequence[JsonMapping], *, output: str, columns: Sequence[str], words: Words | None = None) -> None:
    """Print rows; ``columns`` are those that ``table`` and ``plain`` show, in order, ``words`` how ``table`` does."""
    if output in ("json", "yaml"):
        _print_document(list(rows), output=output)
    elif output == "plain":
        _print_plain(rows, columns=columns)
    else:
        _print_table(rows, columns=columns, words=words or {})


def print_record(record: JsonMapping, *, output: str, words: Words | None = None) -> None:
    """Print one object: as such in ``json`` and ``yaml``, else as rows of its properties and their values.

    There an object within the object has a row for each of its own properties (``skew.gini``), unless it has a word.
    """
    if output in ("json", "yaml"):
        _print_document(record, output=output)
        return
    human = output == "table"
    known = (words or {}) if human else {}
    flat = _flat(record, known)
    rows = [{"property": name, "value": _text(name, value, words=known, human=human)} for name, value in flat]
    print_rows(rows, output=output, columns=("property", "value"))


def _flat(record: JsonMapping, words: Words, *, prefix: str = "") -> Iterator[tuple[str, Json]]:
    for name, value in record.items():
        if isinstance(value, Mapping) and value and name not in words:
            yield from _flat(value, words, prefix=f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _print_document(value: object, *, output: str) -> None:
    if output == "yaml":
        from airflow.utils import yaml

        _write(yaml.dump(value, sort_keys=False, allow_unicode=True), lexer="yaml")
    else:
        _write(json.dumps(value, indent=2 if sys.stdout.isatty() else None), lexer="json")


def _write(text: str, *, lexer: str) -> None:
    """Write a document, coloured on a terminal as Airflow does."""
    if sys.stdout.isatty():
        from airflow.cli.simple_table import AirflowConsole
        from rich.syntax import Syntax

        AirflowConsole().print(Syntax(text.rstrip("\n"), lexer, theme="ansi_dark"), soft_wrap=True)
    else:
        sys.stdout.write(text.rstrip("\n") + "\n")


def _print_plain(rows: Sequence[JsonMapping], *, columns: Sequence[str]) -> None:
    lines = [tuple(columns), *(tuple(_raw_text(row[name]) for name in columns) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _print_table(rows: Sequence[JsonMapping], *, columns: Sequence[str], words: Words) -> None:
    from airflow.cli.simple_table import AirflowConsole, SimpleTable
    from rich.text import Text

    console = AirflowConsole()
    if not rows:
        console.print("No data found")
        return
    table = SimpleTable(show_header=True)  # type: ignore[no-untyped-call]
    for name in columns:
        numbers = all(isinstance(row[name], int | float | None) and not isinstance(row[name], bool) for row in rows)
        table.add_column(name, justify="right" if numbers else "left")
    for row in rows:
        # Text, since a partition may be named [red], which rich would take for a colour.
        table.add_row(*(Text(_text(name, row[name], words=words, human=True)) for name in columns))
    console.print(table)


def _text(name: str, value: Json, *, words: Words, human: bool) -> str:
    if not human:
        return _raw_text(value)
    if value is None:
        return UNKNOWN
    word = words.get(name) or _usual_word(name, value)
    if word is not None:
        return word(value)
    if isinstance(value, list | tuple):
        return ", ".join(_text("", one, words={}, human=True) for one in value) or UNKNOWN
    return _raw_text(value)


def _usual_word(name: str, value: Json) -> Callable[..., str] | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return human_bytes if "bytes" in name else None if "version" in name else human_count
    if isinstance(value, float):
        return "{:.3g}".format
    return short if name.endswith("_at") else None


def _raw_text(value: Json) -> str:
    if value is None or value in ([], ()):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(_raw_text, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping) else str(value)
