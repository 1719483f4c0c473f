"""Write a large copy-on-write Hudi table (version 9) without Hudi: a real layout, with data files of holes only.

Every commit has its three timeline files with real Avro metadata; base files have names, sizes and partitions as that
metadata says, but take no space. Two tables of the same shape are the same, byte for byte.

    python benchmarks/synthetic_table.py --out TABLE --partitions 2000 --files 20 --commits 500
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import uuid
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

from hudi_avro import COMMIT_METADATA

TABLE_NAME = "synthetic"
FIRST_COMMIT = datetime(2026, 1, 1, tzinfo=UTC)
COMMIT_EVERY = timedelta(minutes=10)
COMMIT_TAKES = timedelta(seconds=45)
RECENT_PARTITIONS = 76
_FIRST_DAY = datetime(2020, 1, 1, tzinfo=UTC)
_RECORD_BYTES = 120
_SMALLEST, _LARGEST = 1024 * 1024, 120 * 1024 * 1024

_SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "synthetic_record",
        "namespace": "hoodie.synthetic",
        "fields": [
            {"name": "id", "type": ["null", "long"], "default": None},
            {"name": "ts", "type": ["null", "long"], "default": None},
            {"name": "value", "type": ["null", "double"], "default": None},
            {"name": "day", "type": ["null", "string"], "default": None},
        ],
    },
    separators=(",", ":"),
)

_PROPERTIES = f"""\
#Properties saved by the generator of benchmarks
hoodie.table.name={TABLE_NAME}
hoodie.table.type=COPY_ON_WRITE
hoodie.table.version=9
hoodie.table.initial.version=9
hoodie.table.format=native
hoodie.table.checksum={zlib.crc32(f".{TABLE_NAME}".encode())}
hoodie.table.base.file.format=PARQUET
hoodie.table.recordkey.fields=id
hoodie.table.ordering.fields=ts
hoodie.table.partition.fields=day
hoodie.table.keygenerator.type=SIMPLE
hoodie.table.timeline.timezone=UTC
hoodie.timeline.layout.version=2
hoodie.timeline.path=timeline
hoodie.timeline.history.path=history
hoodie.archivelog.folder=history
hoodie.record.merge.mode=EVENT_TIME_ORDERING
hoodie.datasource.write.hive_style_partitioning=true
hoodie.datasource.write.partitionpath.urlencode=false
hoodie.datasource.write.drop.partition.columns=false
hoodie.partition.metafile.use.base.format=false
hoodie.populate.meta.fields=true
"""

_ZEROS = dict.fromkeys(
    (
        "numDeletes",
        "totalWriteErrors",
        "totalLogRecords",
        "totalUpdatedRecordsCompacted",
        "totalLogBlocks",
        "totalCorruptLogBlock",
        "totalRollbackBlocks",
        "totalLogFilesCompacted",
        "totalLogReadTimeMs",
        "totalLogSizeCompacted",
    ),
    0,
)

WriteStat: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One base file that a commit writes; ``previous`` is the instant of the version it replaces, if any."""

    partition: str
    file_id: str
    bytes: int
    previous: str | None = None


def write_table(base: Path, *, partitions: int, files: int, commits: int, recent: int = RECENT_PARTITIONS) -> None:
    """Write a table of ``files`` file groups in each partition.

    Partitions are filled in groups of ``recent`` at a time, so that the last commits touch that many partitions.
    """
    (base / ".hoodie" / "timeline").mkdir(parents=True)
    (base / ".hoodie" / "hoodie.properties").write_text(_PROPERTIES)
    chance = random.Random(20260101)  # noqa: S311 no secret
    order = _filling_order(partitions, files=files, recent=recent)
    total = partitions * files
    for number in range(commits):
        share = total * (number + 1) // commits - total * number // commits
        writes = [
            Write(partition=partition_path(next(order)), file_id=_file_id(chance), bytes=_size(chance))
            for _ in range(share)
        ]
        _commit(base, instant=commit_time(number), writes=writes)


def add_commits(base: Path, *, commits: int, partitions: int, since: int) -> frozenset[str]:
    """Commit new versions of one file group in each of the last ``partitions`` partitions, ``commits`` times.

    ``since`` is the number of commits that the table has. Returns the partitions that were touched.
    """
    touched = sorted(one.name for one in base.iterdir() if one.name.startswith("day="))[-partitions:]
    chance = random.Random(since)  # noqa: S311 no secret
    for number in range(commits):
        writes = []
        for path in touched:
            newest = _newest_versions(base / path)
            file_id = sorted(newest)[number % len(newest)]
            writes.append(Write(partition=path, file_id=file_id, bytes=_size(chance), previous=newest[file_id]))
        _commit(base, instant=commit_time(since + number), writes=writes)
    return frozenset(touched)


def partition_path(number: int) -> str:
    """The path of a partition: one a day."""
    return f"day={_FIRST_DAY + timedelta(days=number):%Y-%m-%d}"


def commit_time(number: int) -> datetime:
    """When a commit was requested."""
    return FIRST_COMMIT + COMMIT_EVERY * number


def _filling_order(partitions: int, *, files: int, recent: int) -> Iterator[int]:
    """Partition numbers in the order of writing: groups of ``recent`` partitions, the last one whole."""
    first_end = partitions % recent or recent
    ends = range(first_end, partitions + 1, recent)
    for end in ends:
        for _ in range(files):
            yield from range(max(end - recent, 0), end)


def _newest_versions(folder: Path) -> dict[str, str]:
    newest: dict[str, str] = {}
    for one in os.scandir(folder):
        if one.name.endswith(".parquet"):
            file_id, _, instant = one.name.removesuffix(".parquet").split("_")
            newest[file_id] = max(instant, newest.get(file_id, ""))
    return newest


def _commit(base: Path, *, instant: datetime, writes: Sequence[Write]) -> None:
    requested, completed = _digits(instant), _digits(instant + COMMIT_TAKES)
    stats: dict[str, list[WriteStat]] = defaultdict(list)
    for task, write in enumerate(writes):
        name = f"{write.file_id}_{task}-{int(requested) % 9973}-{task + 1000}_{requested}.parquet"
        _write_hole(base / write.partition, name=name, write=write, requested=requested)
        stats[write.partition].append(_write_stat(write, path=f"{write.partition}/{name}"))
    timeline = base / ".hoodie" / "timeline"
    operation = "UPSERT" if any(write.previous for write in writes) else "INSERT"
    planned = {path: [_planned(one) for one in rows] for path, rows in stats.items()}
    (timeline / f"{requested}.commit.requested").touch()
    (timeline / f"{requested}.inflight").write_bytes(_avro(planned, operation=operation))
    (timeline / f"{requested}_{completed}.commit").write_bytes(_avro(stats, operation=operation))


def _write_hole(folder: Path, *, name: str, write: Write, requested: str) -> None:
    if not folder.exists():
        folder.mkdir()
        text = f"#partition metadata\ncommitTime={requested}\npartitionDepth=1\n"
        (folder / ".hoodie_partition_metadata").write_text(text)
    with (folder / name).open("wb") as file:
        file.truncate(write.bytes)


def _write_stat(write: Write, *, path: str) -> WriteStat:
    records = write.bytes // _RECORD_BYTES
    return {
        **_ZEROS,
        "fileId": write.file_id,
        "path": path,
        "prevCommit": write.previous or "null",
        "numWrites": records,
        "numUpdateWrites": records // 10 if write.previous else 0,
        "numInserts": 0 if write.previous else records,
        "numUpdates": records // 10 if write.previous else 0,
        "totalWriteBytes": write.bytes,
        "fileSizeInBytes": write.bytes,
        "partitionPath": write.partition,
        "runtimeStats": {"totalScanTime": 0, "totalCreateTime": 1200, "totalUpsertTime": 0},
    }


def _planned(stat: WriteStat) -> WriteStat:
    """What an inflight commit already knows of a file: its group, not its name or size."""
    known = {"fileId": stat["fileId"], "prevCommit": stat["prevCommit"]}
    return {**dict.fromkeys(stat, 0), "path": None, "partitionPath": None, "runtimeStats": None, **known}


def _avro(stats: Mapping[str, Iterable[WriteStat]], *, operation: str) -> bytes:
    import fastavro

    out = io.BytesIO()
    metadata = {
        "partitionToWriteStats": dict(stats),
        "compacted": False,
        "extraMetadata": {"schema": _SCHEMA},
        "version": None,
        "operationType": operation,
    }
    fastavro.writer(out, fastavro.parse_schema(COMMIT_METADATA), [metadata], sync_marker=b"synthetic-table!")
    return out.getvalue()


def _digits(moment: datetime) -> str:
    return f"{moment:%Y%m%d%H%M%S}{moment.microsecond // 1000:03d}"


def _file_id(chance: random.Random) -> str:
    return f"{uuid.UUID(int=chance.getrandbits(128), version=4)}-0"


def _size(chance: random.Random) -> int:
    return min(max(int(chance.lognormvariate(17.0, 1.0)), _SMALLEST), _LARGEST)


def main() -> None:
    """Write a table where the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="base path; must not exist")
    parser.add_argument("--partitions", type=int, default=2000)
    parser.add_argument("--files", type=int, default=20, help="file groups in each partition")
    parser.add_argument("--commits", type=int, default=500)
    parser.add_argument("--recent", type=int, default=RECENT_PARTITIONS, help="partitions that the last commits touch")
    chosen = parser.parse_args()
    write_table(
        chosen.out, partitions=chosen.partitions, files=chosen.files, commits=chosen.commits, recent=chosen.recent
    )
    print(f"{chosen.out}: {chosen.partitions * chosen.files:,} base files in {chosen.partitions:,} partitions")


if __name__ == "__main__":
    main()
