"""Say the core's errors in Airflow's words."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.errors import TerminalError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Turn terminal errors into AirflowFailException, which takes no retry; leave transient ones to the retries."""
    try:
        yield
    except TerminalError as error:
        raise AirflowFailException(f"{type(error).__name__}: {error}") from error
