"""Health documents on storage."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from airflow_hudi_maint.core.model.health import TableHealth
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.health_documents import newest_health, write_health

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture
def documents(base_path: str) -> DocumentStore:
    return DocumentStore.open(base_path)


def health(moment: datetime) -> TableHealth:
    return TableHealth(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        table_type="COPY_ON_WRITE",
        as_of_instant="20261130000000000",
        checked_at=moment.isoformat(timespec="milliseconds"),
        signals=(),
    )


def test_a_document_is_named_by_the_moment_of_the_check(documents: DocumentStore) -> None:
    """In UTC, so that names sort by time; several checks of one instant stay apart."""
    path = write_health(documents, health=health(NOON))
    assert path.endswith("/health/20261130120000000.json")
    write_health(documents, health=health(NOON + timedelta(milliseconds=5)))
    assert len(documents.names("health")) == 2


def test_the_newest_stays_when_old_ones_are_deleted(documents: DocumentStore) -> None:
    """And is what is read."""
    for minute in range(5):
        write_health(documents, health=health(NOON + timedelta(minutes=minute)), keep=2)
    assert documents.names("health") == ("20261130120300000.json", "20261130120400000.json")
    assert newest_health(documents) == health(NOON + timedelta(minutes=4))


def test_there_may_be_none(documents: DocumentStore) -> None:
    """Nobody checked yet."""
    assert newest_health(documents) is None


def test_a_broken_document_is_passed_over_with_a_warning(
    documents: DocumentStore, caplog: pytest.LogCaptureFixture
) -> None:
    """The one before is read."""
    write_health(documents, health=health(NOON))
    documents.write("health", name="20261130130000000.json", document={"kind": "health", "version": 9})
    with caplog.at_level(logging.WARNING):
        assert newest_health(documents) == health(NOON)
    assert "20261130130000000.json" in caplog.text
