"""What the merges of small files need: a plain directory, and a place for plans and reports."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
from airflow_hudi_maint.core.storage.base_paths import is_below
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY, Storage
from airflow_hudi_maint.core.storage.plain_directory import refuse_inside_table

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MergeWorkspace:
    """A plain directory that is open. ``log`` takes the sentences of progress."""

    storage: Storage
    documents: DocumentStore
    storage_options: Mapping[str, object] = field(default_factory=dict)
    log: Callable[[str], None] = _log.info

    @property
    def root(self) -> str:
        """The path or URL of the directory."""
        return self.storage.root


def open_merge_workspace(
    directory: str,
    *,
    storage_options: Mapping[str, object] | None = None,
    documents_location: str | None = None,
    storage_concurrency: int = DEFAULT_CONCURRENCY,
    log: Callable[[str], None] | None = None,
) -> MergeWorkspace:
    """Open a directory of plain files.

    Plans and reports lie in ``<directory>/.airflow_hudi_maint/``, or in a folder of this directory's own below
    ``documents_location``. Journal and trash always lie in the first: files are only moved within one storage.

    Raises UnsupportedTableError when a directory above is a Hudi, Delta, Iceberg or Paimon table, InvalidSettingError
    for a location that no file system opens or that is among the files.
    """
    storage = Storage.open(directory, storage_options=storage_options, concurrency=storage_concurrency)
    refuse_inside_table(storage.root, storage_options=storage_options)
    if documents_location is None:
        documents = DocumentStore(storage, folder=MERGE_STATE_FOLDER)
    else:
        if is_below(documents_location, root=storage.root):
            raise InvalidSettingError(
                f"documents_location={documents_location!r} lies in {storage.root}, among its files; name a folder "
                "outside, or leave it out"
            )
        name = storage.root.rstrip("/").rpartition("/")[2] or "root"
        digest = hashlib.blake2s(storage.root.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
        documents = DocumentStore.open(
            f"{documents_location.rstrip('/')}/{name}-{digest}",
            storage_options=storage_options,
            storage_concurrency=storage_concurrency,
        )
    return MergeWorkspace(
        storage=storage, documents=documents, storage_options=dict(storage_options or {}), log=log or _log.info
    )
