"""What is done to each golden table, step by step, by the real Hudi writer.

A recipe is a generator: it yields at each state worth keeping, and the caller takes a copy there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from writer import DAYS, HOUSEKEEPING, METADATA_TABLE, Stage, Table, Trips

ODD_REGIONS = ("us/east 1", "50%=half", "Gdańsk+é", None)


def trips(table: Table) -> Iterator[Stage]:
    """Take one table through plain writes, clustering and expiry, to plans that are still pending."""
    yield from _plain(table)
    yield from _clustered(table)
    yield from _pending(table)


def _plain(table: Table) -> Iterator[Stage]:
    table.insert(*(Trips(day=day, first=0, count=4) for day in DAYS[:4]))
    table.insert(*(Trips(day=day, first=4, count=3) for day in (DAYS[0], DAYS[2])))
    table.insert(*(Trips(day=day, first=7, count=2) for day in (DAYS[0], DAYS[2], DAYS[3])))
    table.upsert(
        Trips(day=DAYS[0], first=3, count=2, version=1),
        Trips(day=DAYS[2], first=0, count=1, version=1),
        Trips(day=DAYS[3], first=2, count=1, version=1),
    )
    yield Stage(
        name="plain",
        done=(
            "three inserts (into days 1 to 4, into days 1 and 3, into days 1, 3 and 4), small-file handling off",
            "an upsert of four rows in three days: "
            + ("log files" if table.is_merge_on_read else "new base files of the same file groups"),
        ),
    )


def _clustered(table: Table) -> Iterator[Stage]:
    table.run_clustering(partition=f"day={DAYS[0]}", op="scheduleandexecute")
    table.delete_partition(f"day={DAYS[1]}")
    table.fail_upsert(Trips(day=DAYS[3], first=1, count=1, version=2), Trips(day=DAYS[2], first=20, count=2))
    table.insert(Trips(day=DAYS[4], first=0, count=3))
    yield Stage(
        name="clustered",
        done=(
            "clustering of the first day; the replaced file groups are still on disk",
            "delete_partition of the second day; its files are still on disk",
            "an upsert into the third and fourth day that a pre-commit check stopped after its data files were written",
            "an insert into a fifth day, which rolled the stopped upsert back first",
        ),
    )


def _pending(table: Table) -> Iterator[Stage]:
    table.upsert(Trips(day=DAYS[3], first=2, count=3, version=3))  # the third row is a new one
    done = ["an upsert of three rows of the fourth day, one of them new"]
    if table.is_merge_on_read:
        # Before the clustering plan: 0.15.0 schedules no compaction while an older clustering is pending.
        table.schedule_compaction()
        table.upsert(Trips(day=DAYS[3], first=3, count=2, version=4), Trips(day=DAYS[4], first=1, count=1, version=4))
        done += [
            "a compaction plan of every file group with log files, not executed",
            "after it an upsert of two rows of the fourth day (one in a file group of the plan) and one of the fifth",
        ]
    table.run_clustering(partition=f"day={DAYS[2]}", op="schedule")
    done.append("a clustering plan for the third day's file groups that are in no compaction plan, not executed")
    table.fail_upsert(Trips(day=DAYS[3], first=7, count=1, version=5), Trips(day=DAYS[0], first=30, count=2))
    done.append(
        "an upsert into the first and fourth day that a pre-commit check stopped after its data files were written:"
        " those files, its markers and its inflight instant are there"
    )
    yield Stage(name="pending", done=tuple(done))


def archived(table: Table) -> Iterator[Stage]:
    """Write on until cleaning and archival have taken the beginning of the table's history."""
    table.insert(Trips(day=DAYS[0], first=0, count=4), Trips(day=DAYS[1], first=0, count=4))
    table.insert(Trips(day=DAYS[0], first=4, count=3))
    yield Stage(name="young", done=("an insert into two days and one into the first day",))
    table.run_clustering(partition=f"day={DAYS[0]}", op="scheduleandexecute")
    for version in range(1, 7):
        table.upsert(Trips(day=DAYS[version % 2], first=version % 4, count=2, version=version))
    done = (
        "clustering of the first day",
        "six upserts, in turn into either day, each followed by cleaning (1 commit retained) and archival (2 to 3"
        " commits kept)" + (" and by compaction after every second" if table.is_merge_on_read else ""),
    )
    yield Stage(name="archived", done=done)


def flat(table: Table) -> Iterator[Stage]:
    """Write a table without partitions."""
    table.insert(Trips(day=DAYS[0], first=0, count=4))
    table.insert(Trips(day=DAYS[1], first=0, count=4))
    table.upsert(Trips(day=DAYS[0], first=1, count=1, version=1))
    yield Stage(name="flat", done=("two inserts and an upsert of one row, no partitions",))


def nested(table: Table) -> Iterator[Stage]:
    """Write a table with two partition fields whose values need URL encoding."""
    for first in (0, 3):
        table.insert(
            Trips(day=DAYS[0], first=first, count=3, region="eu"),
            Trips(day=DAYS[1], first=first, count=3, region="us/east 1"),
        )
    table.upsert(Trips(day=DAYS[1], first=1, count=1, version=1, region="us/east 1"))
    yield Stage(name="nested", done=("two inserts into two regions and an upsert of one row, values URL-encoded",))


def bare(table: Table) -> Iterator[Stage]:
    """Write a table whose partition paths are the bare values."""
    table.insert(Trips(day=DAYS[0], first=0, count=3), Trips(day=DAYS[1], first=0, count=3))
    table.upsert(Trips(day=DAYS[1], first=1, count=1, version=1))
    yield Stage(name="bare", done=("an insert into two days and an upsert of one row, no hive-style names",))


def undone(table: Table) -> Iterator[Stage]:
    """Roll a completed write back, leave a failed one where it fell, and clean around a savepoint."""
    table.insert(*(Trips(day=day, first=0, count=3) for day in DAYS[:3]))
    table.upsert(*(Trips(day=day, first=1, count=1, version=1) for day in DAYS[:2]))
    table.savepoint()
    table.upsert(Trips(day=DAYS[0], first=0, count=2, version=2), Trips(day=DAYS[3], first=0, count=2))
    table.roll_back_last()
    table.insert(Trips(day=DAYS[3], first=5, count=2))
    table.fail_upsert(Trips(day=DAYS[1], first=0, count=1, version=3), Trips(day=DAYS[4], first=0, count=2))
    yield Stage(
        name="rolledback",
        done=(
            "an insert into three days and an upsert of two of them, which is savepointed",
            "an upsert of the first day and an insert into the fourth, completed and rolled back",
            "an insert into the fourth day",
            "an upsert of the second and the fifth day that a pre-commit check stopped: its data files are there",
        ),
    )
    for version in (4, 5, 6):
        table.upsert(*(Trips(day=day, first=1, count=2, version=version) for day in DAYS[:3]))
    table.clean()
    yield Stage(
        name="cleaned",
        done=("three upserts of the first three days, the first of which rolled the stopped one back", "a clean"),
    )


def replaced(table: Table) -> Iterator[Stage]:
    """Overwrite and drop partitions, then restore the table to the time before."""
    table.insert(*(Trips(day=day, first=0, count=3) for day in DAYS[:4]))
    table.upsert(*(Trips(day=day, first=1, count=1, version=1) for day in DAYS[:3]))
    kept = table.savepoint()
    table.overwrite(Trips(day=DAYS[0], first=10, count=2))
    table.delete_partition(f"day={DAYS[1]}")
    table.upsert(Trips(day=DAYS[0], first=10, count=1, version=2), Trips(day=DAYS[3], first=0, count=1, version=2))
    table.fail_overwrite(Trips(day=DAYS[2], first=20, count=2))
    yield Stage(
        name="replaced",
        done=(
            "an insert into four days and an upsert of three of them, which is savepointed",
            "insert_overwrite of the first day, delete_partition of the second; their files of before are on disk",
            "an upsert of the first and the fourth day",
            "insert_overwrite of the third day that a pre-commit check stopped after its data files were written",
        ),
    )
    # A restore cannot undo an insert_overwrite in flight (1.2.0 finds no replaced files in its metadata): a write can.
    table.upsert(Trips(day=DAYS[3], first=1, count=1, version=3))
    table.restore(kept)
    table.upsert(Trips(day=DAYS[1], first=0, count=1, version=3))
    yield Stage(
        name="restored",
        done=(
            "an upsert of the fourth day, which rolled the stopped insert_overwrite back first",
            "a restore to the savepoint, which undid the writes since",
            "an upsert of the second day",
        ),
    )


def odd(table: Table) -> Iterator[Stage]:
    """Write partition values with all that a path does not take, and rows without one."""
    for first, regions in ((0, ODD_REGIONS), (3, ODD_REGIONS[:2])):
        table.insert(*(Trips(day=DAYS[0], first=first, count=2, region=region) for region in regions))
    table.upsert(*(Trips(day=DAYS[0], first=1, count=1, version=1, region=region) for region in ODD_REGIONS[1:]))
    yield Stage(
        name="odd",
        done=("two inserts and an upsert; values with spaces, signs and letters beyond ASCII, and none; URL-encoded",),
    )


def sidefiles(table: Table) -> Iterator[Stage]:
    """Write change-data files beside the data files, and partition metafiles in Parquet."""
    table.insert(Trips(day=DAYS[0], first=0, count=3), Trips(day=DAYS[1], first=0, count=3))
    for version in (1, 2):
        table.upsert(Trips(day=DAYS[0], first=version, count=1, version=version))
    yield Stage(
        name="sidefiles",
        done=("an insert into two days and two upserts of the first, change-data capture on, metafiles in Parquet",),
    )


def logcompacted(table: Table) -> Iterator[Stage]:
    """Join log files by log compaction, and leave a second plan of it pending."""
    table.insert(*(Trips(day=day, first=0, count=3) for day in DAYS[:2]))
    for version in (1, 2):
        table.upsert(*(Trips(day=day, first=version, count=1, version=version) for day in DAYS[:2]))
    table.log_compact(execute=True)
    for version in (3, 4):
        table.upsert(Trips(day=DAYS[0], first=0, count=1, version=version))
    table.log_compact(execute=False)
    table.upsert(Trips(day=DAYS[0], first=2, count=1, version=5))
    yield Stage(
        name="logcompacted",
        done=(
            "an insert into two days and two upserts, their log files joined by a log compaction",
            "two upserts of the first day, a log compaction plan that is not executed, and an upsert after it",
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A way to make one table, the states it yields, and the write options that belong to it."""

    make: Callable[[Table], Iterator[Stage]]
    stages: tuple[str, ...]
    partition_fields: str = "day"
    options: dict[str, str] = field(default_factory=dict)


TRIPS = Recipe(make=trips, stages=("plain", "clustered", "pending"))
ARCHIVED = Recipe(make=archived, stages=("young", "archived"), options=HOUSEKEEPING)
ARCHIVED_COMPACTED = Recipe(
    make=archived,
    stages=("young", "archived"),
    options={**HOUSEKEEPING, "hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"},
)
FLAT = Recipe(make=flat, stages=("flat",), partition_fields="")
NESTED = Recipe(
    make=nested,
    stages=("nested",),
    partition_fields="region,day",
    options={"hoodie.datasource.write.partitionpath.urlencode": "true"},
)
BARE = Recipe(make=bare, stages=("bare",), options={"hoodie.datasource.write.hive_style_partitioning": "false"})
UNDONE = Recipe(
    make=undone,
    stages=("rolledback", "cleaned"),
    # Compacted, so that the metadata table has a base file with rows under its log files, but not before the rollback:
    # up to 1.0 Hudi refuses to roll back a commit that its metadata table has compacted.
    options={**METADATA_TABLE, "hoodie.metadata.compact.max.delta.commits": "6"},
)
REPLACED = Recipe(make=replaced, stages=("replaced", "restored"), options=METADATA_TABLE)
ODD = Recipe(
    make=odd,
    stages=("odd",),
    partition_fields="region,day",
    options={**METADATA_TABLE, "hoodie.datasource.write.partitionpath.urlencode": "true"},
)
ODD_BARE = replace(ODD, options={**ODD.options, "hoodie.datasource.write.hive_style_partitioning": "false"})
SIDE_FILES = Recipe(
    make=sidefiles,
    stages=("sidefiles",),
    options={
        **METADATA_TABLE,
        "hoodie.metadata.compact.max.delta.commits": "1",
        "hoodie.table.cdc.enabled": "true",
        "hoodie.partition.metafile.use.base.format": "true",
    },
)
LOG_COMPACTED = Recipe(make=logcompacted, stages=("logcompacted",), options=METADATA_TABLE)
