"""One way to merge a folder of Parquet files into one, measured in this process: ours, or a peer's."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def ours(folder: Path, output: Path, *, method: str = "auto", **settings: Any) -> dict[str, Any]:  # noqa: ANN401
    """The embedded engine."""
    from airflow_hudi_maint.core.merging.parquet import ParquetMergeSettings, merge_parquet
    from airflow_hudi_maint.core.storage.filesystem import Storage

    inputs = [f"{folder.name}/{one.name}" for one in sorted(folder.iterdir())]
    wanted = ParquetMergeSettings(method=method, **settings)
    with Storage.open(str(folder.parent)) as storage:
        merged = merge_parquet(storage, inputs=inputs, output=str(output.relative_to(folder.parent)), settings=wanted)
    return {"rows": merged.rows, "method": merged.method, "row_groups": merged.row_groups}


def cat(folder: Path, output: Path) -> dict[str, Any]:
    """The bytes of all files one after the other, by the tool of the system."""
    with output.open("wb") as file:
        subprocess.run(["/bin/cat", *map(str, sorted(folder.iterdir()))], stdout=file, check=True)
    return {}


def cat_and_sync(folder: Path, output: Path) -> dict[str, Any]:
    """The same, and on the disk at the end, as the embedded engine leaves it."""
    cat(folder, output)
    with output.open("rb") as file:
        os.fsync(file.fileno())
    return {}


def ours_unsynced(folder: Path, output: Path) -> dict[str, Any]:
    """The embedded engine without the wait for the disk, as `cat` does without."""
    os.fsync = lambda _: None  # type: ignore[assignment]
    return ours(folder, output)


def duckdb(folder: Path, output: Path) -> dict[str, Any]:
    """DuckDB's COPY."""
    import duckdb as peer

    files = [str(one) for one in sorted(folder.iterdir())]
    peer.sql(f"COPY (SELECT * FROM read_parquet({files!r})) TO '{output}' (FORMAT parquet)")  # noqa: S608 our own paths
    return {"version": peer.__version__}


def polars(folder: Path, output: Path) -> dict[str, Any]:
    """Polars' streaming sink."""
    import polars as pl

    pl.scan_parquet(sorted(folder.iterdir())).sink_parquet(output)
    return {"version": pl.__version__}


def arrow_dataset(folder: Path, output: Path) -> dict[str, Any]:
    """Pyarrow's dataset, scanned in threads and written as one file."""
    import pyarrow as pa
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    data = ds.dataset([str(one) for one in sorted(folder.iterdir())], format="parquet")
    with pq.ParquetWriter(output, data.schema) as writer:
        for batch in data.to_batches():
            writer.write_table(pa.Table.from_batches([batch]))
    return {"version": pa.__version__}


def arrow_files(folder: Path, output: Path) -> dict[str, Any]:
    """pyarrow, file by file: read it, write it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(folder.iterdir())
    with pq.ParquetWriter(output, pq.read_schema(files[0])) as writer:
        for one in files:
            writer.write_table(pq.read_table(one))
    return {"version": pa.__version__}


def spark(folder: Path, output: Path) -> dict[str, Any]:
    """Spark's coalesce(1), with the start of the session."""
    import pyspark as peer
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
    shutil.rmtree(output, ignore_errors=True)
    session.read.parquet(str(folder)).coalesce(1).write.parquet(str(output))
    session.stop()
    return {"version": peer.__version__}


def read_one(folder: Path, _: Path) -> dict[str, Any]:
    """Read one column, of a folder of files or of one file."""
    return _read(folder, columns=["fare"])


def read_all(folder: Path, _: Path) -> dict[str, Any]:
    """Read all columns."""
    return _read(folder, columns=None)


def _read(path: Path, *, columns: list[str] | None) -> dict[str, Any]:
    import pyarrow.dataset as ds

    files = sorted(path.iterdir()) if path.is_dir() else [path]
    table = ds.dataset([str(one) for one in files], format="parquet").to_table(columns=columns)
    return {"rows": len(table)}


WORKS: Mapping[str, Callable[[Path, Path], dict[str, Any]]] = {
    "ours": ours,
    "ours, chunk copy": lambda folder, output: ours(folder, output, method="chunk copy"),
    "ours, not synced": ours_unsynced,
    "ours, re-encode": lambda folder, output: ours(folder, output, method="re-encode"),
    "cat": cat,
    "cat and sync": cat_and_sync,
    "DuckDB": duckdb,
    "Polars": polars,
    "pyarrow dataset": arrow_dataset,
    "pyarrow files": arrow_files,
    "Spark": spark,
    "read one": read_one,
    "read all": read_all,
}
_IMPORTS = {
    "ours": "airflow_hudi_maint.core.merging.parquet pyarrow.parquet pyarrow.compute fsspec.implementations.local "
    "fsspec.implementations.chained",
    "DuckDB": "duckdb",
    "Polars": "polars",
    "pyarrow dataset": "pyarrow.dataset pyarrow.parquet",
    "pyarrow files": "pyarrow.parquet",
    "read one": "pyarrow.dataset",
    "read all": "pyarrow.dataset",
}


def main() -> None:
    """Import what the work needs, do it, and print seconds, memory and facts as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", choices=[*WORKS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("output", type=Path)
    given = parser.parse_args()
    for module in _IMPORTS.get(given.work.split(",")[0], "").split():
        __import__(module)
    if given.work.startswith("read"):  # the first reading of a process also loads modules
        WORKS[given.work](given.folder, given.output)
    before = _cpu_seconds()
    started = time.perf_counter()
    facts = WORKS[given.work](given.folder, given.output)
    wall = time.perf_counter() - started
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    print(
        json.dumps(
            {
                "cpu_seconds": _cpu_seconds() - before,
                "wall_seconds": wall,
                "peak_bytes": int(peak.split()[1]) * 1024,
                "facts": facts,
            }
        )
    )


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usages)


if __name__ == "__main__":
    sys.exit(main())
