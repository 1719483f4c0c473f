"""What every use case works with: a table, a place for documents, and a way to run Spark jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
from airflow_hudi_maint.core.errors import InvalidSettingError, StorageAccessError
from airflow_hudi_maint.core.maintenance.attaching import Attachment
from airflow_hudi_maint.core.model.plan import PlanBasis
from airflow_hudi_maint.core.storage.base_paths import is_below
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY, Storage
from airflow_hudi_maint.core.storage.properties import PROPERTIES_PATH
from airflow_hudi_maint.core.storage.table import HudiTable

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.model.job import JobHandle
    from airflow_hudi_maint.core.model.statistics import Watermark
    from airflow_hudi_maint.core.storage.request_count import RequestTotals


def _no_log(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A table under maintenance.

    ``engine`` is called only when a job has to run, so that a step with nothing to do costs nothing. ``bundle`` and
    ``write_options`` go with every job. ``storage_options`` are what the table was opened with, for files that lie on
    the same storage. ``log`` takes one line at a time.
    """

    table: HudiTable
    documents: DocumentStore
    engine: Callable[[], Engine]
    bundle: str = DEFAULT_BUNDLE
    write_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    log: Callable[[str], None] = _no_log

    @property
    def requests(self) -> RequestTotals:
        """What has been asked of storage up to now, for the table and for its documents."""
        totals = self.table.storage.requests.totals
        if self.documents.storage is self.table.storage:
            return totals
        return totals + self.documents.storage.requests.totals

    def basis(self, watermark: Watermark, *, now: datetime, statistics_path: str | None = None) -> PlanBasis:
        """The state of the table up to ``watermark``, for a plan to rest on."""
        return PlanBasis(
            base_path=self.table.base_path,
            table_name=self.table.config.name,
            table_version=self.table.config.table_version,
            watermark=watermark,
            created_at=now.isoformat(timespec="milliseconds"),
            statistics_path=statistics_path,
        )


@dataclass(frozen=True, kw_only=True)
class JobControl:
    """How the job of one step is run, and found again by a retry.

    ``previous`` is the job that an earlier try of the same step submitted, if any; ``on_submitted`` gets each job's
    handle before the job is waited for, to be stored. ``plan_path`` is the plan that the earlier try worked on, and
    ``on_planned`` gets the path of this try's. ``timeout_seconds`` None waits as long as the job runs.

    Of an engine whose jobs outlive the process that submitted them, a ``previous`` that runs is waited for instead of
    ended. ``defer`` raises JobDeferred instead of waiting; ``resumed`` says that ``previous`` was deferred over by this
    same try, so that its end is this try's end, too. ``given_up`` says that a person ended the try that waited for
    ``previous``, and began anew: that job is ended, not waited for.
    """

    application_name: str | None = None
    previous: JobHandle | None = None
    on_submitted: Callable[[JobHandle], None] = field(default=lambda _: None)
    plan_path: str | None = None
    on_planned: Callable[[str], None] = field(default=lambda _: None)
    timeout_seconds: float | None = None
    defer: bool = False
    resumed: bool = False
    given_up: bool = False
    attachment: Attachment = field(default_factory=Attachment, repr=False, compare=False)


def open_workspace(  # noqa: PLR0913 each is a setting of its own
    base_path: str,
    *,
    storage_options: Mapping[str, object] | None = None,
    storage_concurrency: int = DEFAULT_CONCURRENCY,
    documents_location: str | None = None,
    timeline_zone: str | None = None,
    engine: Callable[[], Engine] | None = None,
    bundle: str = DEFAULT_BUNDLE,
    write_options: Mapping[str, str] | None = None,
    log: Callable[[str], None] = _no_log,
) -> Workspace:
    """Open a table for maintenance.

    ``documents_location`` is a path or URL for statistics, plans and reports, in a folder for each table; None puts
    them below the table's ``.hoodie``. ``timeline_zone`` (an IANA name) is the zone of the machines that write the
    table, for tables that stamp instants in local time; None means this machine's. ``engine`` None runs Spark in a
    process on this machine. ``storage_options`` serve the table and the documents; of remote storage at most
    ``storage_concurrency`` requests at a time are asked.

    Raises TableNotFoundError, UnsupportedTableError, InvalidSettingError (for ``documents_location`` in the data of a
    table, too), StorageAccessError or StorageError.
    """
    table = HudiTable.open(
        base_path,
        storage_options=storage_options,
        storage_concurrency=storage_concurrency,
        local_zone=_zone(timeline_zone),
    )
    if documents_location:
        _check_documents_location(documents_location, table=table, storage_options=storage_options)
        location = f"{documents_location.rstrip('/')}/{_folder_of(table)}"
        documents = DocumentStore.open(
            location, storage_options=storage_options, storage_concurrency=storage_concurrency
        )
    else:
        documents = DocumentStore(table.storage)
    return Workspace(
        table=table,
        documents=documents,
        engine=engine or (lambda: _local_engine(bundle, time_zone=timeline_zone, storage_options=storage_options)),
        bundle=bundle,
        write_options=dict(write_options or {}),
        storage_options=dict(storage_options or {}),
        log=log,
    )


def _check_documents_location(location: str, *, table: HudiTable, storage_options: Mapping[str, object] | None) -> None:
    """Raise InvalidSettingError for a location among the data of a table: each listing would go through it."""
    is_in_table = is_below(location, root=table.base_path)
    if is_in_table and not is_below(location, root=f"{table.base_path}/.hoodie"):
        problem = f"lies in the table {table.base_path}"
    elif _is_table(Storage.open(location, storage_options=storage_options)):
        problem = "is the base path of a table"
    else:
        return
    msg = f"documents_location={location!r} {problem}, where only data belongs; name a folder outside, or leave it out"
    raise InvalidSettingError(msg)


def _is_table(storage: Storage) -> bool:
    try:
        storage.read_bytes(PROPERTIES_PATH)
    except (FileNotFoundError, StorageAccessError):  # who may only write below it need not be able to look
        return False
    return True


def _folder_of(table: HudiTable) -> str:
    """A folder name for a table's documents beside those of other tables, which may have the same name."""
    digest = hashlib.blake2s(table.base_path.encode(), digest_size=4).hexdigest()
    return f"{table.config.name}-{digest}"


def _local_engine(bundle: str, *, time_zone: str | None, storage_options: Mapping[str, object] | None = None) -> Engine:
    from airflow_hudi_maint.core.engines.local import LocalSparkEngine

    return LocalSparkEngine(bundle=bundle, time_zone=time_zone, storage_options=storage_options or {})


def _zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        msg = f"timeline_zone={name!r} is no time zone; write for example 'UTC' or 'Europe/Berlin'"
        raise InvalidSettingError(msg) from error
