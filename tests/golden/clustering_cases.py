"""What Hudi's clustering strategies were asked, on which tables; ``clustering_plans.json`` has the answers.

Standard library only. A made table is the shell of a golden one (its properties and its timeline) with other data
files: holes of random sizes, which is all that planning looks at. The same table comes out each time.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.golden import HERE, truth, unpack

MEBIBYTE = 1024 * 1024
ANSWERS = HERE / "clustering_plans.json"
RELEASES = {"0.15.0": "v6", "1.0.2": "v8", "1.2.0": "v9"}
TYPES = ("cow", "mor")
MADE = "made"
PARTITIONS = tuple(f"day={number:02d}" for number in range(1, 29))

_WIDE = {"small_file_bytes": 150 * MEBIBYTE, "target_file_bytes": 400 * MEBIBYTE, "max_group_bytes": 600 * MEBIBYTE}
_TIGHT = {"small_file_bytes": 150 * MEBIBYTE, "target_file_bytes": 160 * MEBIBYTE, "max_group_bytes": 200 * MEBIBYTE}
_FEW = {"small_file_bytes": 40 * MEBIBYTE, "target_file_bytes": 64 * MEBIBYTE, "max_group_bytes": 96 * MEBIBYTE}
_TINY = {"small_file_bytes": 5_000, "target_file_bytes": 8_000, "max_group_bytes": 12_000}
_SORTED = {"sort_columns": ["trip_id"]}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question: a table, the settings, and a strategy of ours with its options.

    ``table`` is ``made`` or the state of a golden table. A case with ``max_groups`` in its settings is scheduled as we
    schedule: with the partitions that our plan names. The others are scheduled by Hudi's own strategy.
    """

    name: str
    table: str = MADE
    settings: Mapping[str, Any] = field(default_factory=lambda: _WIDE)
    strategy: str = "size_based"
    options: Mapping[str, Any] = field(default_factory=dict)
    types: tuple[str, ...] = TYPES

    @property
    def is_capped(self) -> bool:
        """Whether the plan has a limit of groups."""
        return "max_groups" in self.settings


CASES = (
    Case(name="size based"),
    Case(name="size based, sorted", settings={**_WIDE, **_SORTED}),
    Case(name="groups that hold one file", settings=_TIGHT),
    Case(name="groups that hold one file, sorted", settings={**_TIGHT, **_SORTED}),
    Case(name="a low small-file limit", settings=_FEW),
    Case(name="recent days", strategy="recent_days", options={"lookback": 5}),
    Case(name="recent days, some skipped", strategy="recent_days", options={"lookback": 4, "skip_from_latest": 3}),
    Case(name="recent days of one", settings=_TIGHT, strategy="recent_days", options={"lookback": 1}),
    Case(
        name="selected by list",
        strategy="selected_partitions",
        options={"partitions": ["day=21", "day=03", "day=04", "day=11"]},
    ),
    Case(name="selected by range", strategy="selected_partitions", options={"begin": "day=07", "end": "day=13"}),
    Case(name="selected from a day on", strategy="selected_partitions", options={"begin": "day=20"}),
    Case(name="selected by pattern", strategy="selected_partitions", options={"regex": "day=[01][3-6]"}),
    Case(
        name="selected by list and range",
        strategy="selected_partitions",
        options={"partitions": ["day=21", "day=03", "day=11"], "end": "day=12"},
    ),
    Case(name="day rolling", strategy="day_rolling"),
    Case(name="single-file sort", settings={**_WIDE, **_SORTED, "execution_strategy": "single_file_sort"}),
    Case(
        name="single-file sort of recent days",
        settings={**_FEW, **_SORTED, "execution_strategy": "single_file_sort"},
        strategy="recent_days",
        options={"lookback": 9},
    ),
    Case(name="a limit of groups", settings={**_WIDE, "max_groups": 7}),
    Case(name="a limit of groups below one partition", settings={**_FEW, "max_groups": 1}),
    Case(name="a limit of groups that hold one file", settings={**_TIGHT, "max_groups": 2}),
    Case(name="golden: clustered", table="clustered", settings=_TINY),
    Case(name="golden: plans pending", table="pending", settings=_TINY),
    Case(name="golden: restored, sorted", table="restored", settings={**_TINY, **_SORTED}),
    # Hudi 1.0.2 does not read the path of a log file in such a partition.
    Case(name="golden: odd partition values", table="odd", settings=_TINY, types=("cow",)),
)


def make_table(state: str, *, release: str, table_type: str, folder: Path) -> Path:
    """Write the table of a case below ``folder`` and return its path."""
    prefix = f"{RELEASES[release]}_{table_type}"
    if state != MADE:
        return unpack(f"{prefix}_{state}", folder)
    table = unpack(f"{prefix}_plain", folder)
    made = table.rename(table.with_name(f"{prefix}_{MADE}"))
    for path in made.glob("day=*"):
        shutil.rmtree(path)
    shutil.rmtree(made / ".hoodie" / "metadata", ignore_errors=True)
    properties = made / ".hoodie" / "hoodie.properties"
    lines = properties.read_text().splitlines()
    properties.write_text("\n".join(one for one in lines if "table.metadata.partitions" not in one) + "\n")
    instants = [one["requested"] for one in truth(f"{prefix}_plain")["timeline"]]
    chance = random.Random(20261130)  # noqa: S311 no secret
    for number, path in enumerate(PARTITIONS):
        (made / path).mkdir()
        (made / path / ".hoodie_partition_metadata").write_text(f"commitTime={instants[0]}\npartitionDepth=1\n")
        for name, size in _files(number, instants=instants, prefix=prefix, chance=chance):
            with (made / path / name).open("wb") as file:
                file.truncate(size)
    return made


def _files(number: int, *, instants: list[str], prefix: str, chance: random.Random) -> Iterator[tuple[str, int]]:
    """Names and bytes of one partition: base files, an older version now and then, and log files on merge-on-read.

    One partition has many files, some have none. In each fifth all sizes are equal.
    """
    *inserts, upsert = instants
    is_even = number % 5 == 0
    for file in range(26 if number == 16 else chance.randrange(8)):
        file_id = f"{number + 1:02d}{chr(ord('a') + file)}-0"
        size = 40 * MEBIBYTE if is_even else chance.randrange(MEBIBYTE, 220 * MEBIBYTE)
        has_log, has_base, is_updated = chance.random() < 0.3, chance.random() < 0.8, chance.random() < 0.2
        written = chance.choice(inserts)
        if not (prefix.endswith("mor") and has_log):
            yield f"{file_id}_0-1-1_{written}.parquet", size
            if is_updated and prefix.endswith("cow"):
                yield f"{file_id}_0-9-9_{upsert}.parquet", size + 7 * MEBIBYTE
            continue
        if has_base:
            yield f"{file_id}_0-1-1_{written}.parquet", size
        # Table version 6 names a log file by its base file's instant, later ones by the delta commit that wrote it.
        yield f".{file_id}_{written if prefix.startswith('v6') else upsert}.log.1_0-2-2", size // 3


@cache
def answers() -> Mapping[str, Any]:
    """What Hudi planned, by ``release/type/case``; ``clustering_plans.py`` tells the form."""
    loaded: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))
    return loaded
