"""Run the steps of a merge: row groups are decoded and encoded in threads, and written in order by the caller's."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice

from airflow_hudi_maint.core.merging.parquet_decode import Decoder
from airflow_hudi_maint.core.merging.parquet_encode import EncodedGroups, Encoder
from airflow_hudi_maint.core.merging.parquet_shortcuts import Shortcuts
from airflow_hudi_maint.core.merging.parquet_splicing import encoded_step
from airflow_hudi_maint.core.merging.parquet_steps import Step


class _Outcome:
    """What a worker hands over for one step: row groups as they come, at most one of them waiting, then the end."""

    def __init__(self, stopped: threading.Event) -> None:
        self._items: queue.SimpleQueue[EncodedGroups | BaseException | None] = queue.SimpleQueue()
        self._room = threading.Semaphore(1)
        self._stopped = stopped

    def put(self, groups: EncodedGroups) -> bool:
        """Hand over row groups once there is room; False when nobody wants them any more."""
        self._room.acquire()
        if self._stopped.is_set():
            return False
        self._items.put(groups)
        return True

    def end(self, error: BaseException | None = None) -> None:
        """Say that this was all."""
        self._items.put(error)

    def abandon(self) -> None:
        """Wake a worker that waits for room."""
        self._room.release()

    def take(self) -> Iterator[EncodedGroups]:
        """What was handed over, in order; raises what the worker raised."""
        while True:
            item = self._items.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
            del item
            self._room.release()


class EncodingPool:
    """Threads that encode steps ahead of the writer, a few steps at most."""

    def __init__(self, *, decoder: Decoder, encoder: Encoder, shortcuts: Shortcuts, workers: int) -> None:
        self._decoder = decoder
        self._shortcuts = shortcuts
        self._encoder = encoder
        self._ahead = workers + 1
        self._stopped = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="parquet-merge")
        self._begun: dict[int, _Outcome] = {}
        self._futures: list[Future[None]] = []

    def begin(self, steps: Sequence[Step], *, at: int) -> None:
        """Have the steps that come next encoded: from place ``at`` on, as many as may be under way."""
        for place in islice((place for place in range(at, len(steps)) if not steps[place].is_copy), self._ahead):
            if place not in self._begun:
                outcome = self._begun[place] = _Outcome(self._stopped)
                self._futures.append(self._pool.submit(self._run, steps[place], outcome))

    def results(self, place: int) -> Iterator[EncodedGroups]:
        """The row groups of a step that was begun."""
        yield from self._begun[place].take()
        del self._begun[place]

    def close(self) -> None:
        """End the threads; what is under way is finished or given up."""
        self._stopped.set()
        for outcome in self._begun.values():
            outcome.abandon()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, step: Step, outcome: _Outcome) -> None:
        try:
            for groups in encoded_step(step, decoder=self._decoder, encoder=self._encoder, shortcuts=self._shortcuts):
                if not outcome.put(groups):
                    return
                del groups
        except BaseException as error:  # noqa: BLE001 the caller's thread raises it
            outcome.end(error)
        else:
            outcome.end()


@contextmanager
def encoding_pool(*, decoder: Decoder, encoder: Encoder, shortcuts: Shortcuts, workers: int) -> Iterator[EncodingPool]:
    """A pool that ends with the block."""
    pool = EncodingPool(decoder=decoder, encoder=encoder, shortcuts=shortcuts, workers=workers)
    try:
        yield pool
    finally:
        pool.close()
