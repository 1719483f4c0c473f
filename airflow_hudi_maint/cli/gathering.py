"""Statistics for commands that only look: of this moment, and written nowhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_hudi_maint.cli.progress import progress

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance import Gathered, Workspace


def gather(
    workspace: Workspace,
    *,
    mode: str = "auto",
    small_file_bytes: int | None = None,
    listing: str = "auto",
    record_source: str = "auto",
) -> Gathered:
    """Gather statistics behind a progress bar; documents that are kept make all but the first gather cheap."""
    from airflow_hudi_maint.core.maintenance import gather_statistics

    with progress(workspace.table.storage.requests):
        return gather_statistics(
            workspace,
            now=now(),
            mode=mode,
            small_file_bytes=small_file_bytes,
            listing=listing,
            record_source=record_source,
        )


def now() -> datetime:
    """Return the moment that a command judges at."""
    return datetime.now(UTC)
