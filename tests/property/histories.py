"""Make up the history of a table: writes, failures, rollbacks, table services and archival, with its metadata table.

Files are written as Hudi's writers would, to the point where a reader sees a difference: data files hold little more
than their commit times, instants and plans say what readers ask them. A step that has nothing to do does nothing, so
every list of steps is a history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.property.history_files import Changes, HistoryFiles
from tests.unit.core.storage.builders import properties_text
from tests.unit.core.storage.mdt_writer import FILES

Step = tuple[str, int, int]

PARTITIONS = ("day=2026-11-01", "day=__HIVE_DEFAULT_PARTITION__", "region=us%2Feast 1/day=2026-11-03")
_KEPT_COMMITS = 2


class History(HistoryFiles):
    """A table on ``memory://`` that is written step by step; see :data:`STEPS`."""

    def run(self, steps: Sequence[Step]) -> Iterator[None]:
        """Take the steps, one at each ``next``."""
        for name, first, second in steps:
            STEPS[name](self, first, second)
            yield

    # Steps. The two numbers choose what they apply to.

    def insert(self, first: int, second: int) -> None:
        self._complete(self._begin_insert(first, count=1 + second % 2))

    def upsert(self, first: int, second: int) -> None:
        write = self._begin_upsert(first, second)
        if write is not None:
            self._complete(write)

    def begin(self, first: int, second: int) -> None:
        """Start a write and leave it; the metadata table may have it already."""
        logs_are_named = self.version >= 8 or not self.merge_on_read
        write = self._begin_upsert(first, second) if second % 2 and logs_are_named else None
        write = write or self._begin_insert(first, count=1)
        if second % 3 == 0:
            self._sync(write)
        self.open.append(write)

    def finish(self, first: int, _: int) -> None:
        """Complete a write that was left, or carry out a plan."""
        if self.open:
            write = self.open.pop(first % len(self.open))
            if write.is_plan:
                self._carry_out(write)
            self._complete(write)

    def roll_back(self, first: int, second: int) -> None:
        """Undo a write that was left or, at times, the last completed one."""
        left = [one for one in self.open if not one.is_plan]
        if left and second % 2:
            write = left[first % len(left)]
            self.open.remove(write)
        elif self._last is not None and not self.open:
            write = self._last
            self.done.remove(write)
        else:
            return
        self._last = None
        self._undo(write)

    def replace(self, first: int, second: int) -> None:
        """Drop a partition, or overwrite it."""
        live = [one for one in self._live(self._partition(first)) if one.plan is None and not self._is_busy(one)]
        if not live:
            return
        operation = ("DELETE_PARTITION", "INSERT_OVERWRITE")[second % 2]
        write = self._write("replacecommit", operation)
        write.replaced = live
        if second % 2:
            self._new_base(write, self._new_group(live[0].partition))
        self._complete(write)

    def schedule_clustering(self, first: int, _: int) -> None:
        live = [one for one in self._live(self._partition(first)) if one.plan is None and not self._is_busy(one)]
        if not live:
            return
        write = self._write("replacecommit", "CLUSTER")
        write.is_plan, write.replaced = True, live
        slices = [self._planned(one) for one in live]
        plan = {"clusteringPlan": {"inputGroups": [{"slices": slices, "numOutputFileGroups": 1}]}}
        self.builder.pending(write.instant, "replacecommit" if self.version < 8 else "clustering", plan)
        self._hold(write, live)

    def schedule_compaction(self, first: int, _: int) -> None:
        live = [
            one
            for one in self._live(self._partition(first))
            if one.plan is None and one.logs and not self._is_busy(one)
        ]
        if not live or not self.merge_on_read:
            return
        write = self._write("commit", "COMPACT")
        write.is_plan = True
        operations = [{"partitionPath": one.partition, **self._planned(one)} for one in live]
        self.builder.pending(write.instant, "compaction", {"operations": operations})
        self._hold(write, live)

    def clean(self, _: int, second: int) -> None:
        """Delete what no reader needs; at times a partition that it emptied, too."""
        deleted: Changes = {}
        active = {one.instant for one in self.open}
        for group in [*self.groups]:
            if group.plan is not None or any(instant in active for instant, _ in (*group.bases, *group.logs)):
                continue
            old = [*group.bases, *group.logs] if group.replaced_by else group.bases[:-1]
            logs = [] if group.replaced_by or not group.bases else [*self._old_logs(group)]
            for instant, name in [*old, *logs]:
                deleted.setdefault(group.partition, {})[name] = None
                (group.bases if (instant, name) in group.bases else group.logs).remove((instant, name))
            if group.replaced_by:
                self.groups.remove(group)
        if not deleted:
            return
        instant = self._tick()
        self._remove_files(deleted)
        emptied = [path for path in deleted if second % 2 and path and not any(self._in(path))]
        for path in emptied:
            self.storage.delete(f"{path}/.hoodie_partition_metadata")
        if self.is_made:
            self.metadata.write_log(instant, deleted, gone=emptied)
            self.metadata.instant(instant, completion=self._tick())
            self._learn(deleted, gone=emptied)
        self.builder.instant(instant, "clean", {"partitionMetadata": {}}, completion=self._tick())
        self.services.append(instant)
        self._last = None

    def archive(self, first: int, _: int) -> None:
        """Take the oldest instants off the timeline, as far as files of all older ones are sure."""
        for write in sorted(self.done, key=lambda one: one.instant)[: 1 + first % 3]:
            is_cleaned = not any(one.replaced_by == write.instant for one in self.groups)
            behind_open = self.open and write.instant > min(one.instant for one in self.open)
            if len(self.done) <= _KEPT_COMMITS or not is_cleaned or behind_open:
                break
            if self.is_made and write.instant > self.compacted_at:
                break
            self.builder.archive(write.instant)
            self.done.remove(write)
            self._last = None
        oldest = min((one.instant for one in self.done), default="")
        for instant in [one for one in self.services if one < oldest]:
            self.builder.archive(instant)
            self.services.remove(instant)

    def compact_metadata(self, _: int, second: int) -> None:
        """Compact the metadata table; at times clean and archive it, too."""
        if not self.is_made or self.open or not self.done:
            return
        newest = max(*(one.instant for one in self.done), *self.services, "")
        instant = self._tick() if self.version >= 8 else f"{newest}001"
        old = [entry.name for entry in self.storage.list(FILES)]
        if any(instant in name for name in old):
            return
        self.metadata.compact(instant, self.known, completion=self._tick())
        self.compacted_at = newest
        self._last = None
        # The reader wants a delta commit that tells where the metadata table is; Hudi keeps those of active commits.
        if second % 2 and self.followed & {one.instant for one in self.done}:
            for name in old:
                self.storage.delete(f"{FILES}/{name}")
            oldest = min(one.instant for one in self.done)
            for name in self.storage.names(self.metadata.timeline_folder):
                time = name.partition(".")[0].partition("_")[0]
                if time < oldest and time != instant:
                    self.metadata.remove(time)

    def make_metadata(self) -> None:
        """Make the metadata table from the disk, while nothing is under way, and write once more."""
        while self.open:
            self.finish(0, 0)
        self.known = {path: dict(self._in(path)) for path in self._partitions_on_disk()}
        self.metadata.make(self.known, completion=self._tick())
        settings = {**self.table().config.properties, "hoodie.table.metadata.partitions": "files"}
        settings.pop("hoodie.table.checksum", None)
        self.builder.put(".hoodie/hoodie.properties", properties_text(settings).encode())
        self.is_made = True
        self.insert(0, 0)


STEPS: Mapping[str, Callable[[History, int, int], None]] = {
    "insert": History.insert,
    "upsert": History.upsert,
    "begin": History.begin,
    "finish": History.finish,
    "roll back": History.roll_back,
    "replace": History.replace,
    "schedule clustering": History.schedule_clustering,
    "schedule compaction": History.schedule_compaction,
    "clean": History.clean,
    "archive": History.archive,
    "compact metadata": History.compact_metadata,
}
