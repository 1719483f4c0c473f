"""What the writes of the active timeline did to a partition's files, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hudi_maint.core.model.commit import CommitMetadata, WriteStat
from airflow_hudi_maint.core.model.file_slice import BASE_FILE_NAME, FileSlice
from airflow_hudi_maint.core.model.instant import Instant

BULK_INSERTS = frozenset({"BULK_INSERT", "BULK_INSERT_PREPPED"})
OVERWRITES = frozenset({"INSERT_OVERWRITE", "INSERT_OVERWRITE_TABLE"})
SERVICES = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingFile:
    """A file group as it stood before a write. ``bytes`` are of its base file."""

    bytes: int
    has_log_files: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionWrite:
    """What one write did to one partition: the file groups that it began, those that it grew, and all before it."""

    requested_time: str
    operation: str
    partition_path: str
    created: tuple[WriteStat, ...]
    grown: frozenset[str]
    before: Mapping[str, StandingFile] = field(repr=False)

    @property
    def created_bytes(self) -> int:
        """Bytes of the new file groups."""
        return sum(one.bytes for one in self.created)

    @property
    def created_records(self) -> int:
        """Records of the new file groups."""
        return sum(one.records for one in self.created)

    @property
    def bucket_count(self) -> int:
        """How many buckets of Hudi's the new file groups are: one that overflows goes on under the same prefix."""
        return len({one.file_id.rpartition("-")[0] for one in self.created})

    def needed(self, target_file_bytes: int) -> int:
        """How many files of the target size would hold what was written to new ones."""
        return max(-(-self.created_bytes // target_file_bytes), 1)


def partition_writes(
    slices: Mapping[str, Sequence[FileSlice]], writes: Iterable[tuple[Instant, CommitMetadata]]
) -> dict[str, list[PartitionWrite]]:
    """Replay the writes, in order of requested time, over the partitions that are looked at.

    Files that are older than the first write stood there before it, as they are now; how those looked that were
    rewritten since is not known.
    """
    ordered = sorted(writes, key=lambda one: one[0].requested_time)
    first = ordered[0][0].requested_time if ordered else ""
    state = {path: _standing(files, before=first) for path, files in slices.items()}
    found: dict[str, list[PartitionWrite]] = {path: [] for path in slices}
    for instant, metadata in ordered:
        for path in metadata.touched_partitions & slices.keys():
            before = state[path]
            stats = metadata.written.get(path, ())
            found[path].append(_write(instant, metadata, path=path, stats=stats, before=before))
            gone = metadata.replaced.get(path, ())
            state[path] = {key: one for key, one in _after(stats, before=before) if key not in gone}
    return found


def _standing(files: Iterable[FileSlice], *, before: str) -> dict[str, StandingFile]:
    return {one.file_id: StandingFile(bytes=one.base_bytes) for one in files if one.base_instant < before}


def _write(
    instant: Instant,
    metadata: CommitMetadata,
    *,
    path: str,
    stats: Sequence[WriteStat],
    before: Mapping[str, StandingFile],
) -> PartitionWrite:
    created = [one for one in stats if one.begins_group and one.file_id not in before and is_base_file(one)]
    ids = {one.file_id for one in created}
    return PartitionWrite(
        requested_time=instant.requested_time,
        operation=(metadata.operation or "").upper(),
        partition_path=path,
        created=tuple(created),
        grown=frozenset(one.file_id for one in stats if one.file_id not in ids and is_base_file(one)),
        before=before,
    )


def _after(stats: Iterable[WriteStat], *, before: Mapping[str, StandingFile]) -> Iterator[tuple[str, StandingFile]]:
    after = dict(before)
    for one in stats:
        if is_base_file(one):
            after[one.file_id] = StandingFile(bytes=one.bytes)
        else:
            known = after.get(one.file_id)
            after[one.file_id] = StandingFile(bytes=known.bytes if known else 0, has_log_files=True)
    yield from after.items()


def is_base_file(stat: WriteStat) -> bool:
    """Whether a write stat is of a base file, and not of a log file."""
    return BASE_FILE_NAME.fullmatch(stat.path.rpartition("/")[2]) is not None
