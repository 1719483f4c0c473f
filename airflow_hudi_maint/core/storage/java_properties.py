"""The format of ``java.util.Properties``, both ways; a file that is changed keeps all that was not asked to change.

Source: the documentation of ``Properties.load(Reader)`` and ``Properties.store(Writer, String)``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import CorruptTableError

_BLANK = " \t\f"
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", **{char: f"\\{char}" for char in "\\=:#!"}}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_ESCAPE = re.compile(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<broken>u)|(?P<char>[\s\S]))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PRINTABLE = range(0x20, 0x7F)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A stretch of the file as it stands there: one entry, or (``key`` None) one comment or blank line."""

    text: str
    key: str | None = None
    value: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesFile:
    """A properties file in memory; whatever is not changed keeps its text: comments, order, spelling, unknown keys.

    Of a key that stands there twice the last entry counts, as in Java.
    """

    pieces: tuple[_Piece, ...] = ()

    @classmethod
    def parse(cls, text: str, *, name: str = "hoodie.properties") -> PropertiesFile:
        r"""Read the text of a file, decoded as ISO-8859-1; ``name`` is the file's, for errors.

        Raises CorruptTableError for a ``\u`` without four hexadecimal digits, which is all that Java refuses.
        """
        return cls(pieces=tuple(_parse_piece(*line, name=name) for line in _logical_lines(text)))

    def as_dict(self) -> dict[str, str]:
        """Keys and values, unescaped, in the order of the file."""
        return {piece.key: piece.value for piece in self.pieces if piece.key is not None}

    def lines(self) -> dict[str, int]:
        """The line on which each key's entry begins, counted from 1; of a key that stands there twice, the last."""
        found: dict[str, int] = {}
        line = 1
        for piece in self.pieces:
            if piece.key is not None:
                found[piece.key] = line
            line += sum(1 for match in _LINE.finditer(piece.text) if match.group())
        return found

    def with_changes(self, *, set: Mapping[str, str], remove: Collection[str] = ()) -> PropertiesFile:  # noqa: A002
        """A file in which the keys of ``set`` have these values and the keys of ``remove`` are gone.

        A changed entry keeps its place; a new one goes to the end.
        """
        last = {piece.key: index for index, piece in enumerate(self.pieces)}
        pieces: list[_Piece] = []
        for index, piece in enumerate(self.pieces):
            if piece.key is not None and piece.key in remove:
                continue
            if piece.key is None or piece.key not in set or piece.value == set[piece.key]:
                pieces.append(piece)
            elif index == last[piece.key]:
                pieces.append(_entry(piece.key, set[piece.key]))
        added = [_entry(key, value) for key, value in set.items() if key not in last]
        if added and pieces:
            last_piece = pieces[-1]
            pieces[-1] = _Piece(text=_ended(last_piece), key=last_piece.key, value=last_piece.value)
        return PropertiesFile(pieces=(*pieces, *added))

    def __str__(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def parse_properties(text: str, *, name: str = "hoodie.properties") -> dict[str, str]:
    r"""Read keys and values, unescaped; ``name`` is the file's, for errors.

    >>> parse_properties("# made by hand\nhoodie.table.name = trips\nfields:day,\\\n   hour\npath=s3\\://lake\n")
    {'hoodie.table.name': 'trips', 'fields': 'day,hour', 'path': 's3://lake'}
    """
    return PropertiesFile.parse(text, name=name).as_dict()


def _logical_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """Cut a text into entries, comments and blank lines, each as it stands and with its content.

    The content of an entry has no leading blanks, line ends and backslashes of continuation; the others have None.
    A backslash alone at the end of the file counts as blank, where Java makes an entry of it without key and value.
    """
    stands, content = "", ""
    for match in _LINE.finditer(text):
        line = match.group()
        stands += line
        bare = line.rstrip("\r\n").lstrip(_BLANK)
        is_comment = not content and bare.startswith(("#", "!"))
        content += "" if is_comment else _without_lone_backslash(bare)
        if is_comment or bare == _without_lone_backslash(bare):
            if stands:
                yield stands, content or None
            stands, content = "", ""
    if stands:
        yield stands, content or None


def _parse_piece(text: str, content: str | None, *, name: str) -> _Piece:
    if content is None:
        return _Piece(text=text)
    key, value = _split(content)
    return _Piece(text=text, key=_unescape(key, name=name), value=_unescape(value, name=name))


def _ended(piece: _Piece) -> str:
    """The text of the last piece, such that an entry may follow: with a line end that no backslash takes back."""
    text = piece.text if piece.text.endswith(("\n", "\r")) else f"{piece.text}\n"
    content = piece.text.rstrip("\r\n")
    is_comment = content.lstrip(_BLANK).startswith(("#", "!"))
    if is_comment or content == _without_lone_backslash(content):
        return text
    return f"{text}\n\n" if text.endswith("\r") else f"{text}\n"  # after \r the first one ends the same line


def _without_lone_backslash(line: str) -> str:
    return line[:-1] if (len(line) - len(line.rstrip("\\"))) % 2 else line


def _split(line: str) -> tuple[str, str]:
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANK)
    if rest.startswith(("=", ":")):
        rest = rest[1:].lstrip(_BLANK)
    return line[:end], rest


def _unescape(text: str, *, name: str) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        if match["broken"]:
            msg = rf"{name} has a \u without four hexadecimal digits in {text!r}; Java writes for example \u00e9"
            raise CorruptTableError(msg)
        return chr(int(match["hex"], 16)) if match["hex"] else _UNESCAPED.get(match["char"], match["char"])

    unescaped = _ESCAPE.sub(plain, text)
    if _SURROGATE.search(unescaped):
        # Java's characters are UTF-16: one outside the basic plane stands there as two escapes.
        return unescaped.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return unescaped


def _entry(key: str, value: str) -> _Piece:
    escaped_value = _escape(value)
    if value.startswith(" "):
        escaped_value = f"\\{escaped_value}"
    return _Piece(text=f"{_escape(key).replace(' ', chr(92) + ' ')}={escaped_value}\n", key=key, value=value)


def _escape(text: str) -> str:
    return "".join(_ESCAPED.get(char) or _escape_unprintable(char) for char in text)


def _escape_unprintable(char: str) -> str:
    if ord(char) in _PRINTABLE:
        return char
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02X}{units[at + 1]:02X}" for at in range(0, len(units), 2))
