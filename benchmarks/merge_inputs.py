"""Write the plain Parquet files that the merge benchmark reads: small ones, wide ones, ones with large row groups."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

_WIDE_COLUMNS = 100
_CITIES = np.array([f"city-{number:03}" for number in range(200)])


def trips(number: int, *, rows: int) -> pa.Table:
    """A file of rides: a counter, a price, a moment, one of 200 cities, and a rider that hardly comes twice."""
    random = np.random.default_rng(number)
    return pa.table(
        {
            "id": np.arange(number * rows, (number + 1) * rows),
            "fare": random.random(rows) * 100,
            "at": pa.array(1_700_000_000_000_000 + random.integers(0, 86_400_000_000, rows), pa.timestamp("us", "UTC")),
            "city": _CITIES[random.integers(0, len(_CITIES), rows)],
            "rider": [f"rider-{one:012x}" for one in random.integers(0, 1 << 48, rows)],
        }
    )


def wide(number: int, *, rows: int) -> pa.Table:
    """A file of 100 columns: counters, prices, flags and cities in turn."""
    random = np.random.default_rng(number)
    makers: tuple[Callable[[], object], ...] = (
        lambda: random.integers(0, 1 << 40, rows),
        lambda: random.random(rows),
        lambda: random.integers(0, 50, rows).astype("int32"),
        lambda: _CITIES[random.integers(0, len(_CITIES), rows)],
    )
    return pa.table({f"column_{place:03}": makers[place % len(makers)]() for place in range(_WIDE_COLUMNS)})


SHAPES: Mapping[str, tuple[int, Callable[[int], pa.Table]]] = {
    "small": (600, lambda number: trips(number, rows=5000)),
    "wide": (60, lambda number: wide(number, rows=2000)),
    "large": (12, lambda number: trips(number, rows=250_000)),
}
"""Of each shape how many files there are, and what is in one."""


def write_inputs(folder: Path, *, shape: str, repeats: int = 1) -> None:
    """Write the files of a shape; ``repeats`` links each so many times under other names, which costs no disk."""
    count, table = SHAPES[shape]
    folder.mkdir(parents=True)
    for number in range(count):
        first = folder / f"part-{number:05}-00000.parquet"
        pq.write_table(table(number), first)
        for copy in range(1, repeats):
            (folder / f"part-{number:05}-{copy:05}.parquet").hardlink_to(first)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", choices=[*SHAPES], default="small")
    parser.add_argument("--repeats", type=int, default=1)
    given = parser.parse_args()
    write_inputs(given.out, shape=given.shape, repeats=given.repeats)
