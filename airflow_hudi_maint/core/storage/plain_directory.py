"""Directories of plain files: their tree, and the tables that must not be taken for one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from airflow_hudi_maint.core.errors import (
    DirectoryNotFoundError,
    InvalidSettingError,
    StorageAccessError,
    StorageError,
    UnsupportedTableError,
)
from airflow_hudi_maint.core.planning.merge_kinds import is_hidden
from airflow_hudi_maint.core.storage.entries import Listing
from airflow_hudi_maint.core.storage.filesystem import Storage

_HUDI = "a Hudi table: use HudiCompactSmallFilesOperator (`airflow hudi small-files`), which has Hudi rewrite its files"
_DELTA = "a Delta table: use Delta's own OPTIMIZE, for example with SparkSqlOperator"
_ICEBERG = "an Iceberg table: use its own rewrite_data_files procedure, for example with SparkSqlOperator"
_PAIMON = "a Paimon table: use its own compact procedure or action, for example with SparkSqlOperator"
_HIVE = "a transactional Hive table: use Hive's own ALTER TABLE … COMPACT, for example with HiveOperator"
_HIVE_ACID = re.compile(r"(?:base|delta|delete_delta)_\d{7,}(?:_\d+)*(?:_v\d+)?")


class PlainFolder(NamedTuple):
    """One directory level; ``refusal`` says which table it is, and then nothing below it is listed."""

    path: str
    entries: Listing
    links: tuple[str, ...]
    refusal: str = ""


def walk(storage: Storage, *, recursive: bool = True) -> Iterator[PlainFolder]:
    """Go through a directory and those below it, in path order; hidden ones and symbolic links are not entered.

    Raises UnsupportedTableError when the directory itself is a table, DirectoryNotFoundError when there is none.
    """
    try:
        root = _look(storage, "")
    except FileNotFoundError as error:
        raise _not_there(storage) from error
    if root.refusal:
        raise UnsupportedTableError(f"{storage.root} is {root.refusal}")
    level = [root]
    if storage.is_local or not recursive:
        yield from _depth_first(storage, root, recursive=recursive)
        return
    found: dict[str, PlainFolder] = {}
    while level:
        found.update({one.path: one for one in level})
        below = [path for one in level for path in _below(one)]
        looked = storage.concurrently(lambda path: _look_or_none(storage, path), below)
        level = [one for one in looked if one is not None]
    for path in sorted(found, key=lambda one: one.split("/")):
        yield found[path]


def check_is_there(storage: Storage) -> None:
    """Raise DirectoryNotFoundError when there is no such directory: what is written there would make it."""
    try:
        storage.list("")
    except FileNotFoundError as error:
        raise _not_there(storage) from error


def _not_there(storage: Storage) -> DirectoryNotFoundError:
    return DirectoryNotFoundError(
        f"There is no directory {storage.root}; give the path or URL of a directory of plain files"
    )


def refuse_inside_table(url: str, *, storage_options: Mapping[str, object] | None) -> None:
    """Raise UnsupportedTableError when a directory above ``url`` is a table: then these are its files.

    A directory above that may not be looked into is passed over.
    """
    for parent, _ in enclosing(url):
        try:
            storage = Storage.open(parent, storage_options=storage_options)
            refusal = _marked(storage)
        except (FileNotFoundError, StorageAccessError, StorageError, InvalidSettingError):
            continue
        if refusal:
            raise UnsupportedTableError(f"{url} lies in {parent}, which is {refusal}")


def enclosing(url: str) -> tuple[tuple[str, str], ...]:
    """The directories that a path or URL lies in, each with the path from there, by its name and by what links make it.

    >>> enclosing("s3://lake/raw/day=1")
    (('s3://lake/raw', 'day=1'), ('s3://lake', 'raw/day=1'))
    """
    names = [url] if "://" in url else list(dict.fromkeys([url, os.path.realpath(url)]))
    return tuple((parent, name[len(parent) :].strip("/")) for name in names for parent in parents_of(name))


def parents_of(url: str) -> tuple[str, ...]:
    """The directories above a path or URL, nearest first.

    >>> parents_of("s3://lake/raw/day=1"), parents_of("/data/raw")
    (('s3://lake/raw', 's3://lake'), ('/data',))
    """
    scheme, separator, rest = url.partition("://")
    names = (rest if separator else url).strip("/").split("/")
    start = f"{scheme}://" if separator else "/"
    return tuple(start + "/".join(names[:count]) for count in range(len(names) - 1, 0, -1))


def _marked(storage: Storage) -> str:
    """What table a directory is, by the few places where one shows: its data may be a long listing."""

    def names(path: str) -> tuple[str, ...]:
        try:
            return tuple(entry.name for entry in storage.list(path))
        except FileNotFoundError:
            return ()

    if names(".hoodie"):
        return _HUDI
    if names("_delta_log"):
        return _DELTA
    if any(name.endswith(".metadata.json") for name in names("metadata")):
        return _ICEBERG
    if any(name.startswith("schema-") for name in names("schema")) and names("snapshot"):
        return _PAIMON
    return ""


def _depth_first(storage: Storage, folder: PlainFolder, *, recursive: bool) -> Iterator[PlainFolder]:
    waiting = [folder]
    while waiting:
        one = waiting.pop()
        yield one
        if recursive:
            below = (_look_or_none(storage, path) for path in _below(one))
            waiting.extend(reversed([found for found in below if found is not None]))


def _below(folder: PlainFolder) -> list[str]:
    if folder.refusal:
        return []
    names = sorted(entry.name for entry in folder.entries if entry.is_directory and not is_hidden(entry.name))
    return [f"{folder.path}/{name}" if folder.path else name for name in names]


def _look_or_none(storage: Storage, path: str) -> PlainFolder | None:
    try:
        return _look(storage, path)
    except FileNotFoundError:  # removed since its parent was listed
        return None


def _look(storage: Storage, path: str) -> PlainFolder:
    entries, links = storage.list_own(path)
    return PlainFolder(path, entries, links, _refusal(storage, path, entries=entries))


def _refusal(storage: Storage, path: str, *, entries: Listing) -> str:  # noqa: PLR0911 one for each table
    folders = {entry.name for entry in entries if entry.is_directory}
    if not folders:
        return ""
    if ".hoodie" in folders:
        return _HUDI
    if "_delta_log" in folders:
        return _DELTA
    if any(_HIVE_ACID.fullmatch(name) for name in folders):
        return _HIVE

    def holds(name: str, *, start: str = "", end: str = "") -> bool:
        try:
            found = storage.list(f"{path}/{name}" if path else name)
        except FileNotFoundError:
            return False
        return any(entry.name.startswith(start) and entry.name.endswith(end) for entry in found)

    if "metadata" in folders and holds("metadata", end=".metadata.json"):
        return _ICEBERG
    if {"snapshot", "schema"} <= folders and holds("schema", start="schema-"):
        return _PAIMON
    return ""
