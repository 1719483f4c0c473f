"""Merge CSV and JSON lines as bytes: what a row is made of is copied, never parsed and written again.

Every file is checked before any of its bytes are written: a file that cannot be understood is named and left out, or
ends the merge, and what was written is as if it had never been there.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from airflow_hudi_maint.core.errors import SchemaConflictError, UnreadableFileError
from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError, decoded, encoded
from airflow_hudi_maint.core.merging.text_scan import TextRules, TextScan, scan
from airflow_hudi_maint.core.model.merge_settings import Codec, FileKind, OnUnreadable
from airflow_hudi_maint.core.model.strict_json import shown
from airflow_hudi_maint.core.planning.merge_kinds import wrong_content
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from hashlib import _Hash

WHOLE_BYTES = 16 << 20
"""A file up to here is held whole while it is merged; a larger one is read twice, in pieces."""
_BATCH_BYTES = 8 << 20
_COPIED_BYTES = 4 << 20


class TextPart(NamedTuple):
    """A stretch of the output: ``before`` (a line end that was missing), then an input from byte ``cut`` on."""

    before: bytes
    path: str
    cut: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedText:
    """What became of a merge.

    ``copied`` files went over as they were, ``rewritten`` ones were compressed anew because a header was cut off.
    ``parts`` are what the output has to hold, in order, where that can be compared byte by byte; otherwise ``digest``
    is the SHA-256 of its plain bytes.
    """

    bytes: int
    plain_bytes: int
    digest: str | None
    copied: int
    rewritten: int
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[TextPart, ...] = ()

    @property
    def method(self) -> str:
        """How, in words of a report."""
        return "byte copy" if not self.rewritten else "byte copy, and compression anew where a header was cut"


def merge_text(
    storage: Storage,
    *,
    inputs: Sequence[tuple[str, int]],
    output: str,
    kind: FileKind,
    rules: TextRules,
    on_unreadable: OnUnreadable = "fail",
    wants_digest: bool = False,
    log: Callable[[str], None] | None = None,
) -> MergedText:
    """Join ``inputs`` (paths and their bytes, in order) into ``output``, a new file.

    One header stays, where there are headers; a line end is added between files where it is missing; a byte order mark
    stays at the beginning alone. All else is the bytes of the inputs. ``wants_digest`` gives a digest in any case, for
    a check on another machine.

    Raises UnreadableFileError that names a damaged file (or leaves it out), SchemaConflictError for two headers that
    differ, StorageError.
    """
    with storage.open_output(output) as sink:
        joiner = _Joiner(storage, sink=sink, kind=kind, rules=rules, on_unreadable=on_unreadable, log=log)
        if wants_digest:
            joiner.count_digest()
        for path, whole, size in _read_ahead(storage, inputs):
            joiner.add(path, whole=whole, size=size)
    return joiner.result()


def text_digest(storage: Storage, path: str, *, codec: Codec) -> str:
    """The SHA-256 of a file's plain bytes; raises UnreadableFileError."""
    digest = hashlib.sha256()
    with storage.open_input(path) as file:
        try:
            for piece in decoded(file, codec=codec):
                digest.update(piece)
        except BrokenTextError as error:
            raise UnreadableFileError(f"{storage.join(path)} cannot be read: {error}") from error
    return digest.hexdigest()


def _read_ahead(storage: Storage, inputs: Sequence[tuple[str, int]]) -> Iterator[tuple[str, bytes | None, int]]:
    """Each input with its bytes, or None for one that is too large.

    From a disk each is read when it is wanted, and still in the processor's cache when it is written; elsewhere the
    next few are read meanwhile.
    """
    if storage.is_local:
        for path, size in inputs:
            yield path, storage.read_bytes(path) if size <= WHOLE_BYTES else None, size
        return

    def read(batch: Sequence[tuple[str, int]]) -> list[tuple[str, bytes | None, int]]:
        small = [path for path, size in batch if size <= WHOLE_BYTES]
        contents = dict(zip(small, storage.read_many(small), strict=True))
        return [(path, contents.get(path), size) for path, size in batch]

    with ThreadPoolExecutor(1, thread_name_prefix="merge-read") as pool:
        waiting: Future[list[tuple[str, bytes | None, int]]] | None = None
        for batch in _batches(inputs, most_files=storage.concurrency):
            following = pool.submit(read, batch)
            if waiting is not None:
                yield from waiting.result()
            waiting = following
        if waiting is not None:
            yield from waiting.result()


def _batches(inputs: Sequence[tuple[str, int]], *, most_files: int) -> Iterator[list[tuple[str, int]]]:
    batch: list[tuple[str, int]] = []
    total = 0
    for path, size in inputs:
        batch.append((path, size))
        total += size if size <= WHOLE_BYTES else 0
        if total >= _BATCH_BYTES or len(batch) >= most_files:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


class _Joiner:
    """Puts one file after the other."""

    def __init__(
        self,
        storage: Storage,
        *,
        sink: BinaryIO,
        kind: FileKind,
        rules: TextRules,
        on_unreadable: OnUnreadable,
        log: Callable[[str], None] | None,
    ) -> None:
        self._storage, self._sink, self._kind, self._rules = storage, sink, kind, rules
        self._skips, self._log = on_unreadable == "skip", log or (lambda _: None)
        self._is_compared = storage.is_local and kind.codec is Codec.NONE
        self._digest: _Hash | None = None if self._is_compared else hashlib.sha256()
        self._parts: list[TextPart] = []
        self._bytes = self._plain = self._copied = self._rewritten = 0
        self._head = b""
        self._first: tuple[str, TextScan] | None = None
        self._missing_end = b""
        self._skipped: list[str] = []
        self._notes: list[str] = []

    def add(self, path: str, *, whole: bytes | None, size: int) -> None:
        """Check a file and write it, or leave it out."""
        try:
            found = self._checked(path, whole=whole, size=size)
        except (BrokenTextError, UnreadableFileError) as error:
            message = f"{self._storage.join(path)} cannot be merged: {error}"
            if not self._skips:
                raise UnreadableFileError(
                    f"{message}; on_unreadable='skip' leaves such files where they are"
                ) from error
            self._log(f"{message}; it stays where it is")
            self._skipped.append(path)
            return
        if not found.plain_bytes or (found.cut_bytes == found.plain_bytes and not found.header):
            self._copied += 1  # nothing at all, or a byte order mark alone
            return
        if self._first is None:
            self._first = (path, found)
        self._write(path, found, whole=whole)

    def count_digest(self) -> None:
        """Have a digest in the place of parts; before the first file."""
        self._is_compared, self._digest = False, hashlib.sha256()

    def result(self) -> MergedText:
        """What was written."""
        return MergedText(
            bytes=self._bytes,
            plain_bytes=self._plain,
            digest=None if self._digest is None else self._digest.hexdigest(),
            copied=self._copied,
            rewritten=self._rewritten,
            skipped=tuple(self._skipped),
            notes=tuple(self._notes),
            parts=tuple(self._parts),
        )

    def _checked(self, path: str, *, whole: bytes | None, size: int) -> TextScan:
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
        if (
            self._first is not None
            and self._rules.has_header
            and found.header
            and found.header != self._first[1].header
        ):
            first, other = self._first
            raise SchemaConflictError(
                f"{self._storage.join(path)} has the header {shown(_text(found.header))} and "
                f"{self._storage.join(first)} has {shown(_text(other.header))}; files with different headers are not "
                "merged: move one of them elsewhere, or leave it out by exclude"
            )
        return found

    def _write(self, path: str, found: TextScan, *, whole: bytes | None) -> None:
        is_first = self._first is not None and self._first[1] is found
        cut = 0 if is_first else found.cut_bytes
        rest = found.plain_bytes - cut
        if not rest:  # a header and no rows
            self._copied += 1
            return
        before = self._missing_end
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
        if self._is_compared:
            self._parts.append(TextPart(before, path, cut, rest))
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
            self._sink.write(piece)
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
