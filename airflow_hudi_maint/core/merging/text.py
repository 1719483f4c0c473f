"""Merge CSV and JSON lines as bytes: what a row is made of is copied, never parsed and written again.

Every file is checked before any of its bytes are written: a file that cannot be understood is named and left out, or
ends the merge, and what was written is as if it had never been there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import UnreadableFileError
from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError, decoded
from airflow_hudi_maint.core.merging.text_joining import WHOLE_BYTES, Joiner, MergedText
from airflow_hudi_maint.core.model.merge_settings import Codec, FileKind, OnUnreadable
from airflow_hudi_maint.core.storage.checked_output import CheckedOutput
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from airflow_hudi_maint.core.merging.text_scan import TextRules

__all__ = ["MergedText", "merge_text", "text_digest"]

_BATCH_BYTES = 8 << 20
_BEHIND_BYTES = 4 << 20


def merge_text(  # noqa: PLR0913 each is a setting of its own
    storage: Storage,
    *,
    inputs: Sequence[tuple[str, int]],
    output: str,
    kind: FileKind,
    rules: TextRules,
    on_unreadable: OnUnreadable = "fail",
    wants_digest: bool = False,
    writes_behind: bool = False,
    log: Callable[[str], None] | None = None,
) -> MergedText:
    """Join ``inputs`` (paths and their bytes, in order) into ``output``, a new file.

    One header stays, where there are headers; a line end is added between files where it is missing; a byte order mark
    stays at the beginning alone. All else is the bytes of the inputs. On a disk what has no codec is read back as it is
    written, and compared; ``wants_digest`` gives a digest in any case, for a check on another machine.
    ``writes_behind`` has a second thread write and compare while this one reads, where there is enough to write.

    Raises UnreadableFileError that names a damaged file (or leaves it out), SchemaConflictError for two headers that
    differ, VerificationError for a disk that holds other bytes than were written, StorageError.
    """
    is_behind = writes_behind and sum(size for _, size in inputs) >= _BEHIND_BYTES
    with storage.open_output(output) as sink, ExitStack() as stack:
        target: CheckedOutput | None = None
        if storage.is_local and kind.codec is Codec.NONE and not wants_digest:
            target = CheckedOutput(sink, path=storage.local_path(output), is_behind=is_behind)
            stack.enter_context(target)
        joiner = Joiner(storage, sink=target or sink, kind=kind, rules=rules, on_unreadable=on_unreadable, log=log)
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
    """Each input with its bytes, or None for one that is too large, and for all on a disk.

    From a disk each is read when it is wanted, and still in the processor's cache when it is written; elsewhere the
    next few are read meanwhile.
    """
    if storage.is_local:
        for path, size in inputs:
            yield path, None, size
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
