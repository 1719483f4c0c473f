"""Read ``hoodie.properties``, and change the policy keys in it, the way Hudi does both.

Source: ``java.util.Properties`` for the format; Hudi's ``HoodieTableConfig`` for backup, recovery and checksum.
"""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.errors import (
    CorruptTableError,
    InvalidSettingError,
    PendingActionError,
    TableNotFoundError,
)
from airflow_hudi_maint.core.model.policy import POLICY_KEYS
from airflow_hudi_maint.core.storage.filesystem import Storage

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = ".hoodie/hoodie.properties.backup"
CHECKSUM_KEY = "hoodie.table.checksum"

_ATTEMPTS = 5
_WAIT_SECONDS = 0.5
_BLANK = " \t\f"
_UNESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f", **{char: f"\\{char}" for char in "\\=:#!"}}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_ESCAPE = re.compile(r"\\(?:u(?P<hex>[0-9a-fA-F]{4})|(?P<broken>u)|(?P<char>[\s\S]))")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PRINTABLE = range(0x20, 0x7F)

_log = logging.getLogger(__name__)


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
        return cls(pieces=tuple(_parse_piece(text, name=name) for text in _logical_lines(text)))

    def as_dict(self) -> dict[str, str]:
        """Keys and values, unescaped, in the order of the file."""
        return {piece.key: piece.value for piece in self.pieces if piece.key is not None}

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
        if added and pieces and not pieces[-1].text.endswith(("\n", "\r")):
            pieces[-1] = _Piece(text=pieces[-1].text + "\n", key=pieces[-1].key, value=pieces[-1].value)
        return PropertiesFile(pieces=(*pieces, *added))

    def __str__(self) -> str:
        return "".join(piece.text for piece in self.pieces)


def parse_properties(text: str, *, name: str = "hoodie.properties") -> dict[str, str]:
    r"""Read keys and values, unescaped; ``name`` is the file's, for errors.

    >>> parse_properties("# made by hand\nhoodie.table.name = trips\nfields:day,\\\n   hour\npath=s3\\://lake\n")
    {'hoodie.table.name': 'trips', 'fields': 'day,hour', 'path': 's3://lake'}
    """
    return PropertiesFile.parse(text, name=name).as_dict()


def load_properties(storage: Storage) -> dict[str, str]:
    """Read a table's ``hoodie.properties``, or its backup while Hudi replaces the file (or died doing so).

    The backup counts where the file is missing, empty, or fails its checksum.

    Raises TableNotFoundError that says whether the directory, ``.hoodie`` or the file is missing, and
    CorruptTableError for a file that cannot be understood and has no backup.
    """
    return _parse(_present(_read_current(storage), storage=storage), storage=storage).as_dict()


def update_properties(
    storage: Storage,
    *,
    set: Mapping[str, str],  # noqa: A002 the word that goes with remove
    remove: Collection[str] = (),
    wait_seconds: float = _WAIT_SECONDS,
) -> dict[str, str]:
    """Change policy keys in ``hoodie.properties`` and return what the file holds then.

    As Hudi does it: write the backup, replace the file, delete the backup; a reader finds a whole file at any moment.
    A backup that a dead writer left is used to mend the file first. Nothing is written when nothing would change. The
    checksum covers the table's name alone and stays.

    A change by somebody else in between is noticed by reading again, before and after the replacement, and what is
    asked for is then applied to that. Storage offers no lock, so a change that falls between the last look and
    the replacement (a millisecond locally) is not seen.

    Raises InvalidSettingError for a key that is no policy key, TableNotFoundError, CorruptTableError, StorageError, and
    PendingActionError when the file kept changing for 5 attempts, ``wait_seconds`` apart.
    """
    _check_keys(set, remove=remove)
    backup_seen: bytes | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(wait_seconds)
        backup = _read_or_none(storage, BACKUP_PATH)
        if backup is not None and backup != backup_seen:
            backup_seen = backup  # a writer at work removes it within the wait; a dead one leaves it
            continue
        before = _recovered(storage, backup=backup)
        wanted = _parse(before, storage=storage).with_changes(set=set, remove=remove)
        if str(wanted).encode("latin-1") == before:
            return wanted.as_dict()
        if _replace(storage, before=before, after=str(wanted).encode("latin-1")):
            return wanted.as_dict()
    msg = (
        f"{storage.join(PROPERTIES_PATH)} kept changing for {_ATTEMPTS} attempts, so it was left as it is; "
        f"another writer holds it, or {storage.join(BACKUP_PATH)} comes and goes: try again"
    )
    raise PendingActionError(msg)


def _check_keys(set: Mapping[str, str], *, remove: Collection[str]) -> None:  # noqa: A002
    foreign = sorted(key for key in (*set, *remove) if key not in POLICY_KEYS)
    both = sorted(key for key in set if key in remove)
    if foreign:
        msg = f"{foreign[0]!r} is not written to hoodie.properties; only {', '.join(POLICY_KEYS)} are"
        raise InvalidSettingError(msg)
    if both:
        msg = f"{both[0]!r} is to be both set and removed; choose one"
        raise InvalidSettingError(msg)


def _recovered(storage: Storage, *, backup: bytes | None) -> bytes:
    """The file's content, mended from the backup where Hudi would do so; no backup is left."""
    current = _read_or_none(storage, PROPERTIES_PATH)
    if not backup:
        return _present(current, storage=storage)
    if current and _is_sound(current):
        _delete_backup(storage)
        return current
    _log.warning("Restored %s from its backup, which a writer left behind", storage.join(PROPERTIES_PATH))
    storage.write_atomic(PROPERTIES_PATH, backup)
    _delete_backup(storage)
    return backup


def _replace(storage: Storage, *, before: bytes, after: bytes) -> bool:
    """Put ``after`` in the place of ``before``; False when somebody else changed the file."""
    storage.write_atomic(BACKUP_PATH, before)
    current = _read_or_none(storage, PROPERTIES_PATH)
    if current == before:
        storage.write_atomic(PROPERTIES_PATH, after)
        current = _read_or_none(storage, PROPERTIES_PATH)
    if current and (current == after or _is_sound(current)):
        # Otherwise the backup stays: it is all that is left, of this writer or of another one at work.
        _delete_backup(storage)
    return current == after


def _delete_backup(storage: Storage) -> None:
    try:
        storage.delete(BACKUP_PATH)
    except FileNotFoundError:  # Hudi's own recovery removes any backup that it sees
        return


def _present(data: bytes | None, *, storage: Storage) -> bytes:
    if data is None:
        raise _not_found(storage)
    if not data:
        msg = f"{storage.join(PROPERTIES_PATH)} is empty and has no backup; restore it from a copy of the table"
        raise CorruptTableError(msg)
    return data


def _read_current(storage: Storage) -> bytes | None:
    # The file is read again at the end: Hudi may have put it back and removed the backup between the first two reads.
    first: bytes | None = None
    for path in (PROPERTIES_PATH, BACKUP_PATH, PROPERTIES_PATH):
        data = _read_or_none(storage, path)
        if data and _is_sound(data):
            return data
        first = first or data
    return first


def _read_or_none(storage: Storage, path: str) -> bytes | None:
    try:
        return storage.read_bytes(path)
    except FileNotFoundError:
        return None


def _is_sound(data: bytes) -> bool:
    """Whether the checksum is there and right; Hudi takes a file without it for half-written."""
    try:
        properties = parse_properties(data.decode("latin-1"))
    except CorruptTableError:
        return False
    name = f"{properties.get('hoodie.database.name', '')}.{properties.get('hoodie.table.name', '')}"
    return properties.get(CHECKSUM_KEY, "").strip() == str(zlib.crc32(name.encode()))


def _parse(data: bytes, *, storage: Storage) -> PropertiesFile:
    return PropertiesFile.parse(data.decode("latin-1"), name=storage.join(PROPERTIES_PATH))


def _not_found(storage: Storage) -> TableNotFoundError:
    try:
        names = {entry.name for entry in storage.list("")}
    except FileNotFoundError:
        return TableNotFoundError(f"There is no directory {storage.root}; give the base path of a Hudi table")
    if ".hoodie" not in names:
        return TableNotFoundError(f"Table {storage.root} has no .hoodie folder; is it a Hudi table?")
    return TableNotFoundError(f"Table {storage.root} has no hoodie.properties; is it a Hudi table?")


def _logical_lines(text: str) -> Iterator[str]:
    """Cut a text into entries, comments and blank lines, each with its line ends and continuation lines."""
    pending = ""
    for match in _LINE.finditer(text):
        line = match.group()
        is_comment = not pending and line.lstrip(_BLANK).startswith(("#", "!"))
        pending += line
        content = line.rstrip("\r\n")
        backslashes = len(content) - len(content.rstrip("\\"))
        if pending and (is_comment or backslashes % 2 == 0):
            yield pending
            pending = ""
    if pending:
        yield pending


def _parse_piece(text: str, *, name: str) -> _Piece:
    lines = [line.rstrip("\r\n").lstrip(_BLANK) for line in _LINE.findall(text) if line]
    # All lines but the last end with the backslash that continues them; so may the last, at the end of the file.
    joined = "".join(line[:-1] for line in lines[:-1]) + _without_lone_backslash(lines[-1])
    if lines[0].startswith(("#", "!")) or not joined:
        return _Piece(text=text)
    key, value = _split(joined)
    return _Piece(text=text, key=_unescape(key, name=name), value=_unescape(value, name=name))


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
