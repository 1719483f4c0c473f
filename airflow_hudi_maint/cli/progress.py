"""A progress bar for long listings, on stderr and only where that is a terminal.

It looks at the storage's own count of requests now and then, so a listing costs nothing more for being watched.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from airflow_hudi_maint.core.storage.filesystem import RequestCount

_QUIET_SECONDS = 0.7
_LOOKS_PER_SECOND = 5


@contextmanager
def progress(
    requests: RequestCount, *, console: Console | None = None, after: float = _QUIET_SECONDS
) -> Iterator[None]:
    """Show how many directories are listed and files read while the block runs, once it has run for a while.

    Nothing is shown where stderr is no terminal. The bar vanishes at the end.
    """
    if console is None:
        from rich.console import Console

        console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(
        target=_draw, args=(requests,), kwargs={"console": console, "ended": ended, "after": after}, daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _draw(requests: RequestCount, *, console: Console, ended: threading.Event, after: float) -> None:
    if ended.wait(after):
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        listed = bars.add_task("Directories listed", total=None)
        read = bars.add_task("Files read", total=None)
        while True:
            # What is known to come grows level by level, and single requests are not announced at all.
            bars.update(listed, completed=requests.lists, total=max(requests.expected_lists, requests.lists))
            bars.update(read, completed=requests.reads, total=max(requests.expected_reads, requests.reads))
            if ended.wait(1 / _LOOKS_PER_SECOND):
                return
