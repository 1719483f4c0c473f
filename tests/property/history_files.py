"""The files and instants of a made-up table, and what its writers and readers know of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from airflow_hudi_maint.core.storage.table import HudiTable
from tests.unit.core.storage.builders import TableBuilder, parquet
from tests.unit.core.storage.mdt_writer import FILES, MetadataWriter, rollback_block

Changes = dict[str, dict[str, int | None]]


@dataclass(kw_only=True, eq=False)
class Group:
    """A file group: its base files and log files by instant, oldest first, as (instant, file name).

    ``data_instant`` is the youngest commit time of its rows.
    """

    partition: str
    file_id: str
    bases: list[tuple[str, str]] = field(default_factory=list)
    logs: list[tuple[str, str]] = field(default_factory=list)
    replaced_by: str | None = None
    plan: str | None = None
    data_instant: str = ""

    @property
    def base_instant(self) -> str:
        return self.bases[-1][0]


@dataclass(kw_only=True, eq=False)
class Write:
    """An instant and all that it did, so that it can be completed late or undone."""

    instant: str
    action: str
    operation: str
    files: Changes = field(default_factory=dict)
    replaced: list[Group] = field(default_factory=list)
    new_bases: list[tuple[Group, str]] = field(default_factory=list)
    new_logs: list[tuple[Group, str]] = field(default_factory=list)
    is_synced: bool = False
    is_plan: bool = False


class HistoryFiles:
    """A table on ``memory://``: how a write is made, completed and undone, and how the metadata table follows."""

    def __init__(self, *, base_path: str, version: int, merge_on_read: bool, partitions: Sequence[str]) -> None:
        settings = {"hoodie.table.partition.fields": "day" if partitions != ("",) else ""}
        self.builder = TableBuilder(
            base_path=base_path, version=version, merge_on_read=merge_on_read, settings=settings
        )
        self.storage = self.builder.storage
        self.version = version
        self.merge_on_read = merge_on_read
        self.partitions = tuple(partitions)
        self.metadata = MetadataWriter(storage=self.storage, version=version)
        self.is_made = False
        self.groups: list[Group] = []
        self.open: list[Write] = []
        self.done: list[Write] = []
        self.services: list[str] = []
        self.known: dict[str, dict[str, int]] = {}
        self.compacted_at = ""
        self.followed: set[str] = set()
        self._ticks = 0
        self._last: Write | None = None

    def table(self) -> HudiTable:
        return self.builder.open()

    def _begin_insert(self, first: int, *, count: int) -> Write:
        write = self._write("deltacommit" if self.merge_on_read else "commit", "INSERT")
        for number in range(count):
            self._new_base(write, self._new_group(self._partition(first + number)))
        self._start(write)
        return write

    def _begin_upsert(self, first: int, second: int) -> Write | None:
        live = [one for one in self._live() if not self._is_busy(one) and not self._is_clustered(one)]
        if not live:
            return None
        write = self._write("deltacommit" if self.merge_on_read else "commit", "UPSERT")
        group = live[first % len(live)]
        if self.merge_on_read:
            self._new_log(write, group, appends=bool(second % 2))
        else:
            self._new_base(write, group)
        self._start(write)
        return write

    def _start(self, write: Write) -> None:
        self.builder.pending(write.instant, write.action)

    def _complete(self, write: Write) -> None:
        if not write.is_synced:
            self._sync(write)
        written: dict[str, list[dict[str, str]]] = {}
        for group, name in (*write.new_bases, *write.new_logs):
            path = f"{group.partition}/{name}" if group.partition else name
            written.setdefault(group.partition, []).append({"fileId": group.file_id, "path": path})
        replaced: dict[str, list[str]] = {}
        for group in write.replaced:
            group.replaced_by = write.instant
            replaced.setdefault(group.partition, []).append(group.file_id)
        content = {
            "partitionToWriteStats": written,
            "partitionToReplaceFileIds": replaced,
            "operationType": write.operation,
        }
        self.builder.instant(write.instant, write.action, content, completion=self._tick())
        for group, _ in write.new_logs:
            group.data_instant = max(group.data_instant, write.instant)
        self.done.append(write)
        self._last = None if write.is_plan else write

    def _sync(self, write: Write) -> None:
        write.is_synced = True
        if self.is_made:
            self.metadata.write(write.instant, write.files, completion=self._tick())
            self.followed.add(write.instant)
            self._learn(write.files)

    def _undo(self, write: Write) -> None:
        rollback = self._tick()
        changes: Changes = {}
        for group, name in write.new_bases:
            changes.setdefault(group.partition, {})[name] = None
            group.bases = [one for one in group.bases if one[1] != name]
        for group, name in write.new_logs:
            if self.version >= 8:
                changes.setdefault(group.partition, {})[name] = None
                group.logs = [one for one in group.logs if one[1] != name]
            else:  # a command block is appended, and nothing deleted
                changes.setdefault(group.partition, {})[name] = self._append(group.partition, name, 7)
        self.groups = [one for one in self.groups if one.bases]
        for group, _ in (*write.new_bases, *write.new_logs):
            group.data_instant = self._data_instant_before(group, write)
        for group in write.replaced:
            group.replaced_by = None
        self._remove_files(changes)
        if self.is_made:
            self._undo_metadata(write, rollback=rollback, changes=changes)
        self.builder.archive(write.instant)
        self.builder.rollback(rollback, of=write.instant, partitions=[*write.files])
        self.services.append(rollback)

    def _undo_metadata(self, write: Write, *, rollback: str, changes: Changes) -> None:
        self.followed.discard(write.instant)
        if write.is_synced:
            self.metadata.remove(write.instant)
            if self.version >= 8:
                for name in self.storage.names(FILES):
                    if name.startswith(f".files-0000-0_{write.instant}."):
                        self.storage.delete(f"{FILES}/{name}")
                self.metadata.instant(rollback, action="rollback", completion=self._tick())
            else:
                block = rollback_block(f"{rollback}006", target=write.instant)
                self.metadata.put(self.metadata.log_path(write.instant), block)
        if self.version < 8:
            self.metadata.write(rollback, changes, completion=self._tick())
        self._learn(changes)

    def _carry_out(self, write: Write) -> None:
        held = [one for one in self.groups if one.plan == write.instant]
        for group in held:
            group.plan = None
        if write.operation == "COMPACT":
            for group in held:
                self._new_base(write, group, rows_of=group.data_instant)
                group.bases.sort()
        else:
            youngest = max(one.data_instant for one in held)
            self._new_base(write, self._new_group(held[0].partition), rows_of=youngest)

    def _write(self, action: str, operation: str) -> Write:
        return Write(instant=self._tick(), action=action, operation=operation)

    def _hold(self, write: Write, groups: Sequence[Group]) -> None:
        for group in groups:
            group.plan = write.instant
        self.open.append(write)
        self._last = None

    def _is_busy(self, group: Group) -> bool:
        """Whether a write that is under way has files in the group."""
        return any(group is one for write in self.open for one, _ in (*write.new_bases, *write.new_logs))

    def _is_clustered(self, group: Group) -> bool:
        return any(one.instant == group.plan and one.operation == "CLUSTER" for one in self.open)

    def _new_group(self, partition: str) -> Group:
        group = Group(partition=partition, file_id=f"group{len(self.groups)}x{self._ticks}-0")
        self.groups.append(group)
        return group

    def _new_base(self, write: Write, group: Group, *, rows_of: str = "") -> None:
        """Write a base file, with rows of the write itself or, where it only moves them, of ``rows_of``."""
        group.data_instant = rows_of or write.instant
        content = _base_file(group.data_instant, rows=1 + self._ticks % 3)
        path = self.builder.base_file(group.partition, group.file_id, write.instant, content)
        name = path.rpartition("/")[2]
        group.bases.append((write.instant, name))
        write.new_bases.append((group, name))
        write.files.setdefault(group.partition, {})[name] = len(content)

    def _new_log(self, write: Write, group: Group, *, appends: bool) -> None:
        base = group.base_instant
        compaction = next((one for one in self.open if one.instant == group.plan), None)
        if compaction is not None:
            base = compaction.instant
        ours = [name for _, name in group.logs if f"_{base}.log" in name]
        if self.version < 8 and appends and ours:
            name = ours[-1]
            size = self._append(group.partition, name, 11)
        else:
            size = 10 + self._ticks
            name = self.builder.log_file(
                group.partition, group.file_id, instant=write.instant, base_instant=base, size=size
            ).rpartition("/")[2]
            group.logs.append((write.instant, name))
        write.new_logs.append((group, name))
        write.files.setdefault(group.partition, {})[name] = size

    def _append(self, partition: str, name: str, size: int) -> int:
        path = f"{partition}/{name}" if partition else name
        content = self.storage.read_bytes(path) + b"+" * size
        self.builder.put(path, content)
        return len(content)

    def _planned(self, group: Group) -> dict[str, object]:
        return {
            "partitionPath": group.partition,
            "fileId": group.file_id,
            "dataFilePath": group.bases[-1][1],
            "deltaFilePaths": [],
            "deltaFileNames": [],
        }

    def _old_logs(self, group: Group) -> Iterator[tuple[str, str]]:
        """Logs of the slices before the latest. From table version 8 a log is older that was complete before it."""
        for instant, name in group.logs:
            if (
                self.version < 8
                and f"_{group.base_instant}.log" not in name
                and name.split("_")[1] < group.base_instant
            ):
                yield instant, name

    def _remove_files(self, changes: Changes) -> None:
        for partition, files in changes.items():
            for name, size in files.items():
                if size is None:
                    self.storage.delete(f"{partition}/{name}" if partition else name)

    def _data_instant_before(self, group: Group, write: Write) -> str:
        """Of writes alone: one that follows a compaction is never undone."""
        return max((instant for instant, _ in (*group.bases, *group.logs)), default=write.instant)

    def _learn(self, changes: Mapping[str, Mapping[str, int | None]], *, gone: Sequence[str] = ()) -> None:
        for partition, files in changes.items():
            known = self.known.setdefault(partition, {})
            for name, size in files.items():
                if size is None:
                    known.pop(name, None)
                else:
                    known[name] = max(size, known.get(name, 0))
        for path in gone:
            self.known.pop(path, None)

    def _live(self, partition: str | None = None) -> list[Group]:
        """The groups that readers see, with a committed base file."""
        unfinished = {one.instant for one in self.open}
        return [
            one
            for one in self.groups
            if one.replaced_by is None
            and partition in (None, one.partition)
            and one.bases
            and not any(instant in unfinished for instant, _ in one.bases)
        ]

    def _partition(self, number: int) -> str:
        return self.partitions[number % len(self.partitions)]

    def _in(self, path: str) -> Iterator[tuple[str, int]]:
        for entry in self.storage.list(path):
            if not entry.is_directory and not entry.name.startswith(".hoodie"):
                yield entry.name, entry.bytes

    def _partitions_on_disk(self) -> tuple[str, ...]:
        return self.table().partition_paths()

    def _tick(self) -> str:
        self._ticks += 1
        minutes, seconds = divmod(self._ticks, 60)
        # Of the past, whenever the tests run.
        return f"202001011{minutes // 60}{minutes % 60:02}{seconds:02}000"


@cache
def _base_file(instant: str, *, rows: int) -> bytes:
    return parquet([instant] * rows)
