"""Where statistics, plans and reports lie: JSON files in a folder of the table, or anywhere else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, TypeAlias, get_args

from airflow_hudi_maint.core.errors import CorruptTableError, DocumentNotFoundError, InvalidSettingError
from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY, Storage, plain_path

DOCUMENTS_FOLDER = ".hoodie/.airflow_hudi_maint"
"""The default location, relative to the base path."""

Folder: TypeAlias = Literal["statistics", "plans", "reports", "scheduled", "health", "restores", "diagnoses"]
FOLDERS: tuple[Folder, ...] = get_args(Folder)

DEFAULT_KEPT = 500

_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class DocumentStore:
    """JSON documents in a few folders below one location.

    Statistics are named ``<instant>.json``, plans ``<instant>-<kind>-<digest>.json``, reports
    ``<instant>-<step>-<digest>.json``: names sort by instant. A document is written whole or not at all; of two writers
    of one name the last one wins. With ``is_read_only`` nothing is written or deleted; the paths that are returned are
    those that documents would have.
    """

    storage: Storage
    _: KW_ONLY
    folder: str = DOCUMENTS_FOLDER
    is_read_only: bool = False

    @classmethod
    def open(
        cls,
        url: str,
        *,
        storage_options: Mapping[str, object] | None = None,
        storage_concurrency: int = DEFAULT_CONCURRENCY,
    ) -> DocumentStore:
        """Keep documents at a location of their own, outside any table.

        Raises InvalidSettingError for a location that no file system opens.
        """
        storage = Storage.open(url, storage_options=storage_options, concurrency=storage_concurrency)
        return cls(storage, folder="")

    def reading_only(self) -> DocumentStore:
        """The same documents for somebody who only looks: a use case runs, and leaves nothing behind.

        One that reads back what it has written (applying a plan) does not find it.
        """
        return replace(self, is_read_only=True)

    @property
    def location(self) -> str:
        """The full path of the location."""
        return self.storage.join(self.folder)

    def path(self, folder: Folder, *, name: str) -> str:
        """The full path of a document that may or may not be there; :meth:`read` takes it.

        Raises InvalidSettingError for an unknown folder or a name that is not one of a JSON file in it.
        """
        return self.storage.join(self._relative(folder, name=name))

    def write(self, folder: Folder, *, name: str, document: JsonObject) -> str:
        """Write a document and return its full path; one of the same name is replaced.

        Statistics are written compactly, since only programs read them; plans and reports with indentation.
        """
        relative = self._relative(folder, name=name)
        if not self.is_read_only:
            self.storage.write_atomic(relative, _dump(document, compact=folder == "statistics"))
        return self.storage.join(relative)

    def create(self, folder: Folder, *, name: str, document: JsonObject) -> bool:
        """Write a document unless there is one of this name, and say whether this call wrote it."""
        relative = self._relative(folder, name=name)
        return self.is_read_only or self.storage.write_new(relative, _dump(document, compact=False))

    def write_page(self, folder: Folder, *, name: str, text: str) -> str:
        """Write a page for people (``<instant>.html``) beside the documents, and return its full path."""
        relative = f"{self._folder(folder)}/{_plain_name(name, suffix='.html')}"
        if not self.is_read_only:
            self.storage.write_atomic(relative, text.encode("utf-8", "backslashreplace"))
        return self.storage.join(relative)

    def write_picture(self, folder: Folder, *, name: str, data: bytes) -> str:
        """Write a picture for people (``<instant>.png``) beside the documents, and return its full path."""
        relative = f"{self._folder(folder)}/{_plain_name(name, suffix='.png')}"
        if not self.is_read_only:
            self.storage.write_atomic(relative, data)
        return self.storage.join(relative)

    def write_kept(self, folder: Folder, *, stem: str, document: JsonObject, keep: int = DEFAULT_KEPT) -> str:
        """Write a document that others may still refer to, and return its full path.

        Its name is ``<stem>-<digest>.json``: another document of the same stem gets another name, the same one the
        same. Of all documents in the folder the ``keep`` that were written last stay.
        """
        digest = hashlib.blake2s(_dump(document, compact=True), digest_size=4).hexdigest()
        path = self.write(folder, name=f"{stem}-{digest}{_SUFFIX}", document=document)
        if not self.is_read_only:
            self._prune(folder, keep=keep)
        return path

    def write_kept_text(self, folder: Folder, *, stem: str, text: str, keep: int = DEFAULT_KEPT) -> str:
        """Write a document that is JSON text already, as :meth:`write_kept` would: a large plan lays itself out."""
        data = text.encode("utf-8", "backslashreplace")
        name = f"{stem}-{hashlib.blake2s(data, digest_size=4).hexdigest()}{_SUFFIX}"
        relative = self._relative(folder, name=name)
        if not self.is_read_only:
            self.storage.write_atomic(relative, data)
            self._prune(folder, keep=keep)
        return self.storage.join(relative)

    def _prune(self, folder: Folder, *, keep: int) -> None:
        """Delete the documents that were written first. By time of writing: names of one instant sort by digest."""
        documents = [entry for entry in self.storage.list(self._folder(folder)) if entry.name.endswith(_SUFFIX)]
        documents.sort(key=lambda entry: (entry.modified_ns or 0, entry.name))
        for entry in documents[: max(0, len(documents) - keep)]:
            self.delete(folder, name=entry.name)

    def read(self, path: str) -> object:
        """Read a document by the full path that :meth:`write` returned, or by one relative to the location.

        A local path may come as a URL, too (``file:///lake/…``).

        Raises DocumentNotFoundError, also for a path outside the location, CorruptTableError naming a file that is no
        JSON, and StorageError.
        """
        relative = plain_path(path).removeprefix(f"{self.location}/")
        if relative.startswith("/") or "://" in relative or ".." in relative.split("/"):
            msg = f"{path} does not lie in {self.location}; give the path that the step before returned"
            raise DocumentNotFoundError(msg)
        try:
            data = self.storage.read_bytes(_join(self.folder, relative))
        except FileNotFoundError as error:
            msg = f"{path} does not exist; run the step that makes it again"
            raise DocumentNotFoundError(msg) from error
        try:
            value: object = json.loads(data)
        except (ValueError, RecursionError) as error:
            msg = f"{self.storage.join(_join(self.folder, relative))} is no JSON ({error}); delete it and make it again"
            raise CorruptTableError(msg) from error
        return value

    def names(self, folder: Folder, *, suffix: str = _SUFFIX) -> tuple[str, ...]:
        """The names in a folder that end with ``suffix``, oldest instant first; none when the folder is not there."""
        try:
            entries = self.storage.list(self._folder(folder))
        except FileNotFoundError:
            return ()
        found = (entry.name for entry in entries if not entry.is_directory and not entry.name.startswith("."))
        return tuple(sorted(name for name in found if name.endswith(suffix)))

    def delete(self, folder: Folder, *, name: str) -> None:
        """Delete a document; one that is gone already is none to delete."""
        if self.is_read_only:
            return
        try:
            self.storage.delete(self._relative(folder, name=name))
        except FileNotFoundError:
            return

    def _relative(self, folder: Folder, *, name: str) -> str:
        return f"{self._folder(folder)}/{_plain_name(name, suffix=_SUFFIX)}"

    def _folder(self, folder: Folder) -> str:
        if folder not in FOLDERS:
            msg = f"{folder!r} is no folder of documents; expected one of {', '.join(FOLDERS)}"
            raise InvalidSettingError(msg)
        return _join(self.folder, folder)


def _plain_name(name: str, *, suffix: str) -> str:
    if "/" in name or name.startswith(".") or not name.endswith(suffix):
        msg = f"{name!r} cannot name a document; expected a file name such as '20261130053458356{suffix}'"
        raise InvalidSettingError(msg)
    return name


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _dump(document: JsonObject, *, compact: bool) -> bytes:
    if compact:
        return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    # A file name that is no UTF-8 comes as lone surrogates, and what replaces them is JSON's own escape of them.
    return f"{text}\n".encode("utf-8", "backslashreplace")
