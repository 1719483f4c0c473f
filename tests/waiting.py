"""Waiting in tests for what others do in their own time."""

from __future__ import annotations

import time
from collections.abc import Callable


def eventually(condition: Callable[[], bool], *, seconds: float = 10.0) -> bool:
    """Look again and again, less often after a while; False when it does not hold in time."""
    deadline, pause = time.monotonic() + seconds, 0.02
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(pause * 2, 0.2)
    return True
