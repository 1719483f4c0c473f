"""The folder of a table in which a job on a cluster and its caller leave each other files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.storage.documents import DOCUMENTS_FOLDER
from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY, Storage

if TYPE_CHECKING:
    from collections.abc import Mapping

JOBS_FOLDER = f"{DOCUMENTS_FOLDER}/jobs"


@dataclass(frozen=True, slots=True)
class StorageExchange:
    """Files below ``.hoodie/.airflow_hudi_maint/jobs`` of a table, wherever its other documents are kept.

    Of a directory of plain files another ``folder``: a ``.hoodie`` would make a table of it.

    A driver sees the table, and perhaps nothing else of what this process sees.
    """

    storage: Storage
    folder: str = JOBS_FOLDER

    @classmethod
    def open(
        cls,
        base_path: str,
        *,
        storage_options: Mapping[str, object] | None = None,
        storage_concurrency: int = DEFAULT_CONCURRENCY,
    ) -> StorageExchange:
        """Open the folder of a table."""
        return cls(Storage.open(base_path, storage_options=storage_options, concurrency=storage_concurrency))

    def url(self, path: str) -> str:
        """Return the full address of a file."""
        return self.storage.join(f"{self.folder}/{path}")

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None without such a file."""
        try:
            return self.storage.read_bytes(f"{self.folder}/{path}")
        except FileNotFoundError:
            return None

    def write(self, path: str, data: bytes) -> None:
        """Write a file whole, in the place of an older one."""
        self.storage.write_atomic(f"{self.folder}/{path}", data)

    def delete(self, path: str) -> None:
        """Delete a file, if it is there."""
        with suppress(FileNotFoundError):
            self.storage.delete(f"{self.folder}/{path}")
