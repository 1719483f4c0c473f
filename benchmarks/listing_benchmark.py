"""Measure a full gather on S3: by directory against by the metadata table, with the requests that each makes.

python benchmarks/listing_benchmark.py [--partitions 200 2000 --files 4 --rounds 3 --delay 0]

The server is moto on this machine; --delay adds seconds to each answer, as a network does. It takes CPU of the same
cores, so wall seconds say less than requests do.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import ROOT, Line, Sample, finish, median_of, ratio, report_sample, run_sample
from synthetic_table import write_table

if TYPE_CHECKING:
    from airflow_hudi_maint.core.storage.filesystem import Storage
    from tests.s3_server import Asked, S3Server

SCRIPT = Path(__file__).name
WAYS = ("directory", "metadata")
COMMITS = 50
COMMITS_IN_LOGS = 8
NOW = datetime(2026, 11, 30, tzinfo=UTC)
_UPLOADS = 16
_LOADED = ("fastavro._read", "s3fs", "airflow_hudi_maint.core.storage.statistics")
_PROPERTIES = ".hoodie/hoodie.properties"


def gather(url: str, *, options: Mapping[str, object], way: str) -> Mapping[str, Any]:
    """Gather in full and tell what was found and what was asked of the storage."""
    from airflow_hudi_maint.core.storage.statistics import gather_statistics
    from airflow_hudi_maint.core.storage.table import HudiTable

    table = HudiTable.open(url, storage_options=options)
    statistics = gather_statistics(table, now=NOW, mode="full", listing=way)
    return {
        "partitions": len(statistics.partitions),
        "files": statistics.data_file_count,
        "bytes": statistics.total_bytes,
        "lists": table.storage.requests.lists,
        "reads": table.storage.requests.reads,
    }


def upload(base: Path, *, storage: Storage) -> None:
    """Put a synthetic table on storage, with a few bytes for each of its holes, and its metadata table beside it."""
    files = {path.relative_to(base).as_posix(): path for path in base.rglob("*") if path.is_file()}
    holes = {name: b"x" * (1 + index % 97) for index, name in enumerate(sorted(files)) if name.endswith(".parquet")}
    contents = {name: holes.get(name) or path.read_bytes() for name, path in files.items()}
    contents[_PROPERTIES] += b"hoodie.table.metadata.partitions=files\n"
    with ThreadPoolExecutor(_UPLOADS) as pool:
        for _ in pool.map(lambda name: storage.write_atomic(name, contents[name]), contents):
            pass
    _write_metadata_table(holes, storage=storage)


def _write_metadata_table(holes: Mapping[str, bytes], *, storage: Storage) -> None:
    """An HFile of all but the last commits, and a log file for each of those."""
    from tests.unit.core.storage.mdt_writer import MetadataWriter

    written: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    for path, content in holes.items():
        partition, _, name = path.rpartition("/")
        written[name.rpartition("_")[2].removesuffix(".parquet")][partition][name] = len(content)
    metadata = MetadataWriter(storage=storage, version=9)
    (*compacted,) = sorted(written)[:-COMMITS_IN_LOGS]
    whole: dict[str, dict[str, int]] = defaultdict(dict)
    for instant in compacted:
        for partition, files in written[instant].items():
            whole[partition].update(files)
        metadata.instant(instant, completion=_later(instant))
    metadata.compact(_later(compacted[-1]), whole, completion=_later(compacted[-1]))
    for instant in sorted(written)[-COMMITS_IN_LOGS:]:
        metadata.write(instant, written[instant], completion=_later(instant))


def _later(instant: str) -> str:
    """Some seconds later: commits are requested at whole minutes."""
    return f"{instant[:12]}40000"


def measure(chosen: argparse.Namespace) -> list[Line]:
    """Measure tables of each size, print the figures and return the lines: times of the largest."""
    from tests.s3_server import running_s3_server

    requests: dict[str, set[int]] = defaultdict(set)
    print("\n| partitions | files | by | wall s | CPU s | listings | reads | requests, as the server counts |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    with running_s3_server() as server:
        for partitions in sorted(chosen.partitions):
            samples, asked = _samples(server, partitions=partitions, chosen=chosen)
            for way in WAYS:
                requests[way].add(asked[way])
                print(_row(way, samples[way], asked=asked[way]))
    name = f"metadata table ÷ directory, wall, {partitions:,} partitions"
    figure = ratio(samples["metadata"], samples["directory"], field="wall_seconds")
    spread = max(requests["metadata"]) - min(requests["metadata"])
    return [
        Line(name=name, figure=figure, limit=1 / 3),
        Line(name="requests that more partitions add, by metadata table", figure=spread, limit=0),
    ]


def _samples(
    server: S3Server, *, partitions: int, chosen: argparse.Namespace
) -> tuple[dict[str, list[Sample]], dict[str, int]]:
    from airflow_hudi_maint.core.storage.filesystem import Storage

    url = f"s3://{server.new_bucket()}/table"
    print(f"Putting {partitions:,} partitions × {chosen.files} files on S3 …", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="hudi-bench-") as folder:
        base = Path(folder) / "table"
        write_table(base, partitions=partitions, files=chosen.files, commits=COMMITS)
        with Storage.open(url, storage_options=server.storage_options) as storage:
            upload(base, storage=storage)
    options = json.dumps(server.storage_options)
    samples: dict[str, list[Sample]] = {way: [] for way in WAYS}
    asked: dict[str, int] = {}
    for _ in range(chosen.rounds):
        for way in WAYS:
            server.forget()
            server.delay(chosen.delay)
            samples[way].append(run_sample(SCRIPT, "--child", way, "--table", url, "--options", options))
            asked[way] = sum(1 for _ in _of_the_table(server.asked()))
    found = [{key: samples[way][-1].facts[key] for key in ("partitions", "files", "bytes")} for way in WAYS]
    if found[0] != found[1]:
        sys.exit(f"The two ways do not find the same: {found[0]} against {found[1]}")
    return samples, asked


def _of_the_table(asked: Sequence[Asked]) -> Iterator[Asked]:
    return (one for one in asked if one.verb in ("GET", "HEAD"))


def _row(way: str, samples: Sequence[Sample], *, asked: int) -> str:
    facts = samples[-1].facts
    wall, cpu = (median_of(samples, field=field) for field in ("wall_seconds", "cpu_seconds"))
    counts = f"{facts['lists']} | {facts['reads']} | {asked}"
    return f"| {facts['partitions']:,} | {facts['files']:,} | {way} | {wall:.2f} | {cpu:.2f} | {counts} |"


def child(way: str, *, url: str, options: Mapping[str, object]) -> None:
    """Measure one gather in this process. Imports come before: a worker has them loaded."""
    for module in _LOADED:
        importlib.import_module(module)
    report_sample(lambda: gather(url, options=options, way=way))


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--files", type=int, default=4, help="files in each partition")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delay", type=float, default=0, help="seconds that the server waits before each answer")
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    parser.add_argument("--options", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    chosen = arguments()
    if chosen.child:
        child(chosen.child, url=chosen.table, options=chosen.options)
        return
    sys.path.insert(0, str(ROOT))
    lines = measure(chosen)
    finish(lines)


if __name__ == "__main__":
    main()
