"""A process that dies at a chosen call to the file system, and from then on does nothing more.

On a local disk every call of ``local_files`` and ``checked_output`` to the system counts, one by one, and a write may
leave half of its bytes; elsewhere every call to fsspec's client.
"""

from __future__ import annotations

import builtins
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self

import pytest

from airflow_hudi_maint.core.storage import checked_output, local_files

_OF_OS = (
    "scandir", "lstat", "open", "chown", "chmod", "unlink", "rename", "replace", "makedirs", "fsync", "link", "rmdir",
    "readv", "preadv",
)  # fmt: skip
_OF_CLIENTS = frozenset(
    ("ls", "cat_file", "pipe_file", "rm_file", "cp_file", "info", "exists", "open", "makedirs", "mv", "call_s3")
)


class Died(BaseException):
    """What a kill is to the code: nothing that it catches or repairs."""


class Deaths:
    """Counts calls; the one numbered ``at`` (from 0) does not happen, nor does any behind it. None never dies."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.calls = 0

    @property
    def is_dead(self) -> bool:
        return self.at is not None and self.calls > self.at

    def call(self, act: Callable[..., Any], *args: Any, half: Callable[[], Any] | None = None, **options: Any) -> Any:
        self.calls += 1
        if self.is_dead:
            if half is not None and self.at is not None and self.calls == self.at + 1:
                half()
            raise Died
        return act(*args, **options)


class _File:
    """A file of the local disk whose writing counts."""

    def __init__(self, file: Any, deaths: Deaths) -> None:
        self._file, self._deaths = file, deaths

    def write(self, data: bytes) -> int:
        def half() -> None:
            self._file.write(bytes(data)[: len(data) // 2])
            self._file.flush()

        return int(self._deaths.call(self._file.write, data, half=half))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def dying_on_disk(deaths: Deaths) -> Iterator[None]:
    """Have every call of ``local_files`` and ``checked_output`` counted."""

    def opened(path: str, mode: str = "r", **options: Any) -> Any:
        file = deaths.call(builtins.open, path, mode, **options)
        return _File(file, deaths) if "x" in mode or "w" in mode else file

    def counted(act: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **options: deaths.call(act, *args, **options)

    def written(number: int, data: memoryview) -> int:
        return int(deaths.call(os.write, number, data, half=lambda: os.write(number, data[: len(data) // 2])))

    fake = SimpleNamespace(
        **{**vars(os), **{name: counted(getattr(os, name)) for name in _OF_OS}, "write": written},
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_files, "os", fake)
        patch.setattr(checked_output, "os", fake)
        patch.setattr(local_files, "open", opened, raising=False)
        patch.setattr(local_files, "shutil", SimpleNamespace(copy2=counted(shutil.copy2)))
        yield


class DyingClient:
    """A client of fsspec's each call of which counts."""

    def __init__(self, client: Any, deaths: Deaths) -> None:
        self.__dict__.update(_client=client, _deaths=deaths)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._client, name)
        if name not in _OF_CLIENTS:
            return found
        return lambda *args, **options: self._deaths.call(found, *args, **options)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._client, name, value)
