"""A merge that dies at any call to the file system loses and doubles no row, whatever comes after it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import DocumentNotFoundError, HudiMaintError
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace, open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import current_files, merge_small_files, undo_merge
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_journal import JOURNAL_FOLDER, STAGING_FOLDER
from tests.property.faulty_files import Deaths, Died, DyingClient, dying_on_disk

SETTINGS = MergeSettings(min_age_seconds=0, csv_header="yes", parallel_groups=1)
NOW = datetime.now(tz=UTC) + timedelta(hours=1)
FILES = {
    "day=1/a.csv": b"id,name\n1,x\n",
    "day=1/b.csv": b"id,name\n2,y",
    "day=1/c.csv": b"id,name\n3,z\n",
    "day=2/a.json": b'{"id": 1}\n',
    "day=2/b.json": b'{"id": 2}\n',
}
ROWS = {
    "day=1": ["1,x", "2,y", "3,z"],
    "day=2": ['{"id": 1}', '{"id": 2}'],
}
PLACES = ["file", "memory"]


class Lake:
    """A directory that can be opened by a process that lives, and by one that dies."""

    def __init__(self, kind: str, *, tmp_path: Path) -> None:
        self.kind = kind
        self.url = str(tmp_path / "lake") if kind == "file" else f"memory://{uuid.uuid4().hex}/lake"
        self.workspace = open_merge_workspace(self.url)
        for path, data in FILES.items():
            self.workspace.storage.write_new(path, data)
        if kind == "file":
            (tmp_path / "lake/day=1/.b.csv.crc").write_bytes(b"crc")

    @contextmanager
    def dying(self, deaths: Deaths) -> Iterator[MergeWorkspace]:
        """The workspace of a process that dies."""
        if self.kind == "file":
            with dying_on_disk(deaths):
                yield self.workspace
            return
        storage = self.workspace.storage
        client = DyingClient(storage._fs, deaths)  # noqa: SLF001 what a test puts between
        dying = Storage(root=storage.root, file_system=client, prefix=storage._prefix, concurrency=1)  # noqa: SLF001
        yield replace(self.workspace, storage=dying, documents=DocumentStore(dying, folder=MERGE_STATE_FOLDER))

    def rows(self) -> Mapping[str, list[str]]:
        """The rows of each directory, as a reader finds them that heeds the journal."""
        return {day: self._rows(day, current_files(self.workspace, directory=day)) for day in ROWS}

    def plain_rows(self) -> Mapping[str, list[str]]:
        """The rows of each directory, as a reader finds them that only lists."""
        storage = self.workspace.storage
        listed = {day: [one.name for one in storage.list(day) if one.name[0] not in "._"] for day in ROWS}
        return {day: self._rows(day, tuple(sorted(names))) for day, names in listed.items()}

    def files(self) -> Mapping[str, bytes]:
        """What lies there, but for what is ours."""
        storage = self.workspace.storage
        found = {f"{day}/{one.name}" for day in ROWS for one in storage.list(day)}
        return {path: storage.read_bytes(path) for path in sorted(found)}

    def leftovers(self) -> list[str]:
        storage = self.workspace.storage
        return [
            f"{folder}/{one.name}"
            for folder, entries in storage.list_many([JOURNAL_FOLDER, STAGING_FOLDER]).items()
            for one in entries
            if not one.name.startswith(".")
        ]

    def _rows(self, day: str, names: tuple[str, ...]) -> list[str]:
        rows: list[str] = []
        for name in names:
            lines = self.workspace.storage.read_bytes(f"{day}/{name}").decode().splitlines()
            rows.extend(lines[1:] if name.endswith(".csv") else lines)
        return rows


@pytest.fixture(params=PLACES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _calls(kind: str, tmp_path: Path, *, undoes: bool = False) -> int:
    """How many calls a run makes that nothing kills."""
    lake = Lake(kind, tmp_path=tmp_path / "whole")
    deaths = Deaths()
    if undoes:
        merge_small_files(lake.workspace, now=NOW, settings=SETTINGS)
    with lake.dying(deaths) as workspace:
        if undoes:
            undo_merge(workspace, now=NOW)
        else:
            merge_small_files(workspace, now=NOW, settings=SETTINGS)
    return deaths.calls


def test_a_merge_that_dies_at_any_call_ends_in_the_same_rows_when_it_is_run_again(kind: str, tmp_path: Path) -> None:
    """In between no row is missing in a plain listing, and by the journal none is doubled either."""
    calls = _calls(kind, tmp_path)
    assert 60 < calls
    for at in range(calls):
        lake = Lake(kind, tmp_path=tmp_path / str(at))
        with lake.dying(Deaths(at)) as workspace, pytest.raises(Died):
            merge_small_files(workspace, now=NOW, settings=SETTINGS)

        assert ROWS == lake.rows(), f"by the journal, after call {at}"
        for day, rows in lake.plain_rows().items():
            assert set(ROWS[day]) == set(rows), f"in a listing, after call {at}"
        merge_small_files(lake.workspace, now=NOW, settings=SETTINGS)
        assert ROWS == lake.rows() == lake.plain_rows(), f"after call {at} and another run"
        assert [] == lake.leftovers()
        assert 2 == len([path for path in lake.files() if not path.rpartition("/")[2].startswith(".")])


def test_a_merge_that_dies_twice_ends_in_the_same_rows(kind: str, tmp_path: Path) -> None:
    """The recovery dies as well; of both every so many are tried."""
    calls = _calls(kind, tmp_path)
    tried, step = 0, calls // 7
    for first in range(calls // 3, calls, step):
        for second in range(step // 2, calls, step):
            lake = Lake(kind, tmp_path=tmp_path / f"{first}-{second}")
            with lake.dying(Deaths(first)) as workspace, pytest.raises(Died):
                merge_small_files(workspace, now=NOW, settings=SETTINGS)
            try:
                with lake.dying(Deaths(second)) as workspace:
                    merge_small_files(workspace, now=NOW, settings=SETTINGS)
            except Died:
                tried += 1
            assert ROWS == lake.rows(), (first, second)
            merge_small_files(lake.workspace, now=NOW, settings=SETTINGS)
            assert ROWS == lake.rows() == lake.plain_rows(), (first, second)
            assert [] == lake.leftovers()
    assert 10 < tried


def test_an_undo_that_dies_at_every_other_call_is_finished_by_the_next_run(kind: str, tmp_path: Path) -> None:
    """Whatever the death left, no row is lost or doubled, and undoing the rest gives back each file."""
    calls = _calls(kind, tmp_path, undoes=True)
    for at in range(0, calls, 2):
        lake = Lake(kind, tmp_path=tmp_path / str(at))
        before = lake.files()
        run = merge_small_files(lake.workspace, now=NOW, settings=SETTINGS).report.run
        with lake.dying(Deaths(at)) as workspace, pytest.raises(Died):
            undo_merge(workspace, now=NOW, run=run)

        assert ROWS == lake.rows(), f"by the journal, after call {at}"
        with suppress(DocumentNotFoundError):  # the recovery finished it, so nothing was left to undo
            undo_merge(lake.workspace, now=NOW, run=run)
        assert before == lake.files(), f"after call {at} and another undo"
        assert [] == lake.leftovers()


def test_a_failing_call_is_an_error_that_loses_nothing(kind: str, tmp_path: Path) -> None:
    """A disk that fills up, or a network that breaks: the process lives on, tidies up, and the next run succeeds."""
    calls = _calls(kind, tmp_path)
    for at in range(0, calls, 3):
        lake = Lake(kind, tmp_path=tmp_path / str(at))
        failing = _Failing(at)
        with lake.dying(failing) as workspace, suppress(HudiMaintError):
            merge_small_files(workspace, now=NOW, settings=SETTINGS)
        assert ROWS == lake.rows(), f"after call {at} failed"
        merge_small_files(lake.workspace, now=NOW, settings=SETTINGS)
        assert ROWS == lake.rows() == lake.plain_rows(), f"after call {at} failed and another run"
        assert [] == lake.leftovers()


class _Failing(Deaths):
    """One call fails as on a full disk; those behind it work again."""

    def call(self, act: Callable[..., Any], *args: Any, half: Callable[[], Any] | None = None, **options: Any) -> Any:
        self.calls += 1
        if self.at is not None and self.calls == self.at + 1:
            if half is not None:
                half()
            raise OSError(28, os.strerror(28))
        return act(*args, **options)
