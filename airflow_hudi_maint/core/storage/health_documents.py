"""Keep what was found about a table's health as documents, named by the moment of the check in UTC."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime

from airflow_hudi_maint.core.errors import CorruptTableError, DocumentNotFoundError
from airflow_hudi_maint.core.model.health import TableHealth
from airflow_hudi_maint.core.model.instant import moment_instant
from airflow_hudi_maint.core.storage.documents import DocumentStore

KEPT_HEALTH = 200
"""So many checks are kept: a week of hourly ones, half a year of daily ones."""

_FILE_NAME = re.compile(r"[0-9]{17}\.json")

_log = logging.getLogger(__name__)


def write_health(documents: DocumentStore, *, health: TableHealth, keep: int = KEPT_HEALTH) -> str:
    """Write ``<yyyyMMddHHmmssSSS of the check>.json``, delete all but the newest ``keep``, and return the full path."""
    checked = moment_instant(datetime.fromisoformat(health.checked_at), zone=UTC)
    path = documents.write("health", name=f"{checked}.json", document=health.to_json())
    for old in _names(documents)[:-keep]:
        documents.delete("health", name=old)
    return path


def newest_health(documents: DocumentStore) -> TableHealth | None:
    """Read the newest check; a broken file is skipped with a warning, and the one before is read."""
    for name in reversed(_names(documents)):
        path = documents.path("health", name=name)
        try:
            return TableHealth.from_json(documents.read(path), name=path)
        except DocumentNotFoundError:  # pruned by another check
            continue
        except CorruptTableError as error:
            _log.warning("Skipped broken health document: %s", error)
    return None


def _names(documents: DocumentStore) -> tuple[str, ...]:
    return tuple(name for name in documents.names("health") if _FILE_NAME.fullmatch(name))
