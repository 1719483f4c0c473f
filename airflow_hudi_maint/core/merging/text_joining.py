"""Put one text file behind the other, each after it was looked through."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO

from airflow_hudi_maint.core.errors import SchemaConflictError, UnreadableFileError
from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError, decoded, encoded
from airflow_hudi_maint.core.merging.text_glance import Glance
from airflow_hudi_maint.core.merging.text_scan import TextRules, TextScan, scan
from airflow_hudi_maint.core.model.merge_settings import Codec, FileKind, OnUnreadable
from airflow_hudi_maint.core.model.strict_json import shown
from airflow_hudi_maint.core.planning.merge_kinds import wrong_content
from airflow_hudi_maint.core.storage.checked_output import BLOCK_BYTES, CheckedOutput, read_into
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from hashlib import _Hash

WHOLE_BYTES = 16 << 20
"""A file up to here is held whole while it is merged; a larger one is read twice, in pieces."""
_COPIED_BYTES = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedText:
    """What became of a merge.

    ``copied`` files went over as they were, ``rewritten`` ones were compressed anew because a header was cut off.
    ``digest`` is the SHA-256 of the plain bytes; None where each byte was compared when it was written.
    """

    bytes: int
    plain_bytes: int
    digest: str | None
    copied: int
    rewritten: int
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """How, in words of a report."""
        return "byte copy" if not self.rewritten else "byte copy, and compression anew where a header was cut"


class Joiner:
    """Puts one file behind the other. A ``sink`` that checks what it writes needs no digest."""

    def __init__(
        self,
        storage: Storage,
        *,
        sink: BinaryIO | CheckedOutput,
        kind: FileKind,
        rules: TextRules,
        on_unreadable: OnUnreadable,
        log: Callable[[str], None] | None,
    ) -> None:
        self._storage, self._kind, self._rules = storage, kind, rules
        self._skips, self._log = on_unreadable == "skip", log or (lambda _: None)
        self._checked = sink if isinstance(sink, CheckedOutput) else None
        self._write_piece: Callable[[bytes | memoryview], object] = (
            sink.put if isinstance(sink, CheckedOutput) else sink.write
        )
        self._digest: _Hash | None = None if self._checked else hashlib.sha256()
        self._bytes = self._plain = self._copied = self._rewritten = 0
        self._head = b""
        self._first: tuple[str, TextScan] | None = None
        self._glance: Glance | None = None
        self._header = bytearray()
        self._missing_end = b""
        self._skipped: list[str] = []

    def add(self, path: str, *, whole: bytes | None, size: int) -> None:
        """Check a file and write it, or leave it out; ``whole`` are its bytes where they were read already."""
        if self._glance is not None and self._add_at_a_glance(path, glance=self._glance, size=size):
            return
        try:
            if whole is None and self._storage.is_local and size <= WHOLE_BYTES:
                whole = self._storage.read_bytes(path)
            found = self._scanned(path, whole=whole, size=size)
        except (BrokenTextError, UnreadableFileError) as error:
            self._leave_out(path, error)
            return
        if not found.plain_bytes or (found.cut_bytes == found.plain_bytes and not found.header):
            self._copied += 1  # nothing at all, or a byte order mark alone
            return
        if self._first is None:
            self._first = (path, found)
        if self._glance is None and self._checked is not None:
            self._glance = Glance.of(found, rules=self._rules, kind=self._kind)
            self._header = bytearray(len(self._glance.header)) if self._glance else self._header
        self._write(path, found, whole=whole)

    def result(self) -> MergedText:
        """What was written."""
        return MergedText(
            bytes=self._bytes,
            plain_bytes=self._plain,
            digest=None if self._digest is None else self._digest.hexdigest(),
            copied=self._copied,
            rewritten=self._rewritten,
            skipped=tuple(self._skipped),
        )

    def _add_at_a_glance(self, path: str, *, glance: Glance, size: int) -> bool:
        """Read a file to where it is written from, and say whether it is all right there; if not, nothing was done."""
        before, rest = self._missing_end, size - len(glance.header)
        wanted = len(before) + rest + 1  # one more than there should be: it may have grown
        if self._checked is None or rest <= 0 or wanted > BLOCK_BYTES:
            return False
        block = self._checked.room(wanted)
        start = block.used + len(before)
        end = start + rest
        behind = block.view[start : end + 1]
        try:
            count = read_into(
                self._storage.local_path(path), [memoryview(self._header), behind] if glance.header else [behind]
            )
        except OSError:  # the long way says which and why
            return False
        if count != size or self._header != glance.header:
            return False
        missing = glance.missing_end(block.data, start=start, end=end)
        if missing is None:
            return False
        block.view[block.used : start] = before
        self._checked.advance(end - block.used)
        self._storage.requests.add("reads")
        self._bytes += len(before) + rest
        self._plain += len(before) + rest
        self._copied += 1
        self._missing_end = missing
        return True

    def _leave_out(self, path: str, error: Exception) -> None:
        message = f"{self._storage.join(path)} cannot be merged: {error}"
        if not self._skips:
            raise UnreadableFileError(f"{message}; on_unreadable='skip' leaves such files where they are") from error
        self._log(f"{message}; it stays where it is")
        self._skipped.append(path)

    def _scanned(self, path: str, *, whole: bytes | None, size: int) -> TextScan:
        if whole is not None and len(whole) != size:
            raise UnreadableFileError(f"it has {len(whole)} bytes and had {size} when it was planned: it still grows")
        if whole is not None and self._kind.codec is Codec.NONE:  # what most files are, without a detour
            _refuse(wrong_content(self._kind, head=whole[:12]))
            found = scan((whole,) if whole else (), rules=self._rules)
        else:
            with self._opened(path, whole=whole) as file:
                _refuse(wrong_content(self._kind, head=file.read(12)))
                file.seek(0)
                found = scan(decoded(file, codec=self._kind.codec), rules=self._rules)
        if self._first is not None and self._rules.has_header and found.header:
            self._check_header(path, found, first=self._first)
        return found

    def _check_header(self, path: str, found: TextScan, *, first: tuple[str, TextScan]) -> None:
        if found.header == first[1].header:
            return
        raise SchemaConflictError(
            f"{self._storage.join(path)} has the header {shown(_text(found.header))} and "
            f"{self._storage.join(first[0])} has {shown(_text(first[1].header))}; files with different headers are not "
            "merged: move one of them elsewhere, or leave it out by exclude"
        )

    def _write(self, path: str, found: TextScan, *, whole: bytes | None) -> None:
        is_first = self._first is not None and self._first[1] is found
        cut = 0 if is_first else found.cut_bytes
        rest = found.plain_bytes - cut
        if not rest:  # a header and no rows
            self._copied += 1
            return
        if self._kind.codec is not Codec.NONE:
            self._write_compressed(path, cut=cut, whole=whole)
        else:
            self._end_line()
            if whole is not None:
                self._put(self._hashed((whole,), cut=cut))
            else:
                with self._opened(path, whole=None) as file:
                    self._put(self._hashed(decoded(file, codec=Codec.NONE), cut=cut))
            self._copied += 1
        self._plain += rest
        self._missing_end = b"" if found.ends_line else found.line_end

    def _write_compressed(self, path: str, *, cut: int, whole: bytes | None) -> None:
        codec = self._kind.codec
        with self._opened(path, whole=whole) as file:
            if not self._head:
                self._head = file.read(12)
                file.seek(0)
            self._end_line()
            if cut:
                self._put(encoded(self._hashed(decoded(file, codec=codec), cut=cut), codec=codec, head=self._head))
                self._rewritten += 1
                return
            for _ in self._hashed(decoded(file, codec=codec), cut=0):
                pass
            file.seek(0)
            self._put(iter(lambda: file.read(_COPIED_BYTES), b""))
            self._copied += 1

    def _end_line(self) -> None:
        """Write the line end that the file before lacks."""
        if self._missing_end:
            self._put(encoded(self._hashed([self._missing_end], cut=0), codec=self._kind.codec, head=self._head))
            self._plain += len(self._missing_end)

    def _hashed(self, pieces: Iterable[bytes], *, cut: int) -> Iterator[bytes | memoryview]:
        for piece in pieces:
            if cut >= len(piece):
                cut -= len(piece)
                continue
            view = memoryview(piece)[cut:] if cut else piece
            cut = 0
            if self._digest is not None:
                self._digest.update(view)
            yield view

    def _put(self, pieces: Iterable[bytes | memoryview]) -> None:
        for piece in pieces:
            self._write_piece(piece)
            self._bytes += len(piece)

    @contextmanager
    def _opened(self, path: str, *, whole: bytes | None) -> Iterator[BinaryIO]:
        with ExitStack() as stack:
            yield BytesIO(whole) if whole is not None else stack.enter_context(self._storage.open_input(path))


def _refuse(problem: str) -> None:
    if problem:
        raise BrokenTextError(problem)


def _text(data: bytes) -> str:
    return codecs.decode(data, "utf-8", "backslashreplace")
