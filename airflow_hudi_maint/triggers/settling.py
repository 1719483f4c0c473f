"""How long a trigger runs at least before it wakes its task up.

A worker's process lives some seconds longer than its task that was deferred (Airflow's supervisor notices its end at
the next heartbeat). A task that runs again by the time that an executor reports that process is taken for lost: it
loses a try, or fails where it has none left.
"""

from __future__ import annotations

import asyncio
import time

SETTLE_SECONDS = 10.0


async def settle(*, started: float) -> None:
    """Wait until it is long enough since ``started``, a moment of :func:`time.monotonic`."""
    await asyncio.sleep(max(0.0, started + SETTLE_SECONDS - time.monotonic()))
