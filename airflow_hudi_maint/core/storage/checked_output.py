"""Write a file on a disk of this machine block by block, and compare each with what the disk then says it holds.

What is read from the inputs lies in a block until it was written, read back and found equal: no input is read twice,
and all of it stays in the processor's cache.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO, Self

from airflow_hudi_maint.core.errors import VerificationError

BLOCK_BYTES = 512 * 1024
"""Of one block. More falls out of the cache before it is read back, less costs calls."""
_BLOCKS_BEHIND = 4


@dataclass(slots=True)
class Block:
    """A stretch of the output that is being filled; ``used`` bytes of it are."""

    data: bytearray
    view: memoryview
    used: int = 0
    written: Future[None] | None = field(default=None, repr=False)


class CheckedOutput:
    """The bytes of a new file, in order. For one thread; ``is_behind`` has another one write and compare meanwhile.

    The block ends when everything is written and was found on the disk as it was handed over. Raises VerificationError
    where it was not, and OSError, for a block that was handed over before or when the context ends.
    """

    def __init__(self, sink: BinaryIO, *, path: str, is_behind: bool = False) -> None:
        self.bytes = 0
        self._path = path
        self._sink = sink.fileno()
        self._is_behind = is_behind
        self._blocks = [_block() for _ in range(_BLOCKS_BEHIND if is_behind else 1)]
        self._at = 0
        self._back = _block()
        self._written = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._again = os.open(self._path, os.O_RDONLY)
        self._stack.callback(os.close, self._again)
        if self._is_behind:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix="merge-write"))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with self._stack:
            if kind is None:
                self._hand_over()
                for block in self._blocks:
                    _wait(block)
                self._check_size()

    def room(self, size: int) -> Block:
        """The block that the next ``size`` bytes go to, from its ``used`` on; at most BLOCK_BYTES."""
        block = self._blocks[self._at]
        if block.used + size > BLOCK_BYTES:
            self._hand_over()
            block = self._blocks[self._at]
            _wait(block)
        return block

    def advance(self, size: int) -> None:
        """Take what was put into :meth:`room` as the next bytes of the file."""
        self._blocks[self._at].used += size
        self.bytes += size

    def put(self, data: bytes | memoryview) -> None:
        """Write bytes, however many."""
        view = memoryview(data)
        while view.nbytes:
            block = self.room(1)
            size = min(len(view), BLOCK_BYTES - block.used)
            block.view[block.used : block.used + size] = view[:size]
            self.advance(size)
            view = view[size:]

    def _hand_over(self) -> None:
        block = self._blocks[self._at]
        if self._is_behind:
            block.written = self._pool.submit(self._settle, block)
            self._at = (self._at + 1) % len(self._blocks)
        else:
            self._settle(block)

    def _settle(self, block: Block) -> None:
        """Write a block, read it back and compare; it is empty then."""
        size, start = block.used, self._written
        _write_all(self._sink, block.view[:size])
        self._written += size
        if _read_all(self._again, self._back.view[:size], start=start) != size or not self._back.data.startswith(
            block.view[:size]
        ):
            raise VerificationError(
                f"{self._path} holds other bytes than were written to it, from byte {start} on; nothing was moved, and "
                "the inputs are as they were: look after that disk"
            )
        block.used = 0

    def _check_size(self) -> None:
        size = os.fstat(self._again).st_size
        if size != self.bytes:
            raise VerificationError(f"{self._path} has {size} bytes, and should have {self.bytes}; nothing was moved")


def read_into(path: str, views: Sequence[memoryview]) -> int:
    """Read the beginning of a file into one buffer after the other, and return how many bytes that were."""
    number = os.open(path, os.O_RDONLY)
    try:
        return os.readv(number, views)
    finally:
        os.close(number)


def _block() -> Block:
    data = bytearray(BLOCK_BYTES)
    return Block(data, memoryview(data))


def _wait(block: Block) -> None:
    written, block.written = block.written, None
    if written is not None:
        written.result()


def _write_all(number: int, view: memoryview) -> None:
    while len(view):
        view = view[os.write(number, view) :]


def _read_all(number: int, view: memoryview, *, start: int) -> int:
    done = 0
    while done < len(view):
        count = os.preadv(number, [view[done:]], start + done)
        if not count:
            break
        done += count
    return done
