"""Wait for something, for a bounded time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_POLL_SECONDS = 0.3


def wait_until(condition: Callable[[], bool], *, seconds: float, poll_seconds: float = _POLL_SECONDS) -> bool:
    """Look at once and then every ``poll_seconds`` until it is so; False when it is not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(poll_seconds)
    return True
