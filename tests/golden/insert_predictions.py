"""Record what real Hudi makes of inserts, for the predictions of ``core.planning.sizing`` to be held to.

Each release gets a process of its own. A handful of histories is written; every case copies one of them and inserts
into the copy with settings of its own. Beside what Hudi did stands what the table's files and commits were before, so
that the comparison needs neither the tables nor a JVM.

    python tests/golden/insert_predictions.py --bundles-dir DIR [--release 1.2.0 ...]

DIR holds ``hudi-spark3.5-bundle_2.12-<release>.jar``; releases that are not named keep what was recorded of them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_hudi_maint.core.storage.footers import record_count
from airflow_hudi_maint.core.storage.sizing import commit_sizes, partition_files
from airflow_hudi_maint.core.storage.table import HudiTable

BUNDLE = "hudi-spark3.5-bundle_2.12-{release}.jar"
RELEASES = ("0.15.0", "1.0.2", "1.2.0")
RECORDED = Path(__file__).with_suffix(".json")
COPY_ON_WRITE, MERGE_ON_READ = "COPY_ON_WRITE", "MERGE_ON_READ"

_LIMIT = "hoodie.parquet.small.file.limit"
_MAX = "hoodie.parquet.max.file.size"
_SPLIT = "hoodie.copyonwrite.insert.split.size"
_AUTO = "hoodie.copyonwrite.insert.auto.split"
_ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
_THRESHOLD = "hoodie.record.size.estimation.threshold"
_CANDIDATES = "hoodie.merge.small.file.group.candidates.limit"
_COMMITS = "_hoodie.record.size.estimator.max.commits"
_METADATA = "hoodie.record.size.estimator.average.metadata.size"
_STEADY = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.compact.inline.max.delta.commits": "100",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.metadata.enable": "false",
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    # Small filters and no codec: a file's bytes are its rows', and a file of 20 KB can be called large.
    "hoodie.bloom.index.filter.type": "SIMPLE",
    "hoodie.index.bloom.num_entries": "10",
    "hoodie.index.bloom.fpp": "0.1",
    "hoodie.parquet.compression.codec": "uncompressed",
}
_NEW_FILES_OF_60 = {_LIMIT: "0", _AUTO: "false", _SPLIT: "60"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One insert into a copy of a history; ``inserts`` is by partition."""

    history: str
    options: Mapping[str, str]
    inserts: Mapping[str, int] = field(default_factory=lambda: {"a": 420, "b": 150, "c": 90, "d": 150})
    operation: str = "insert"
    width: int = 1


def cases() -> list[Case]:
    """Every case; all of them are recorded with each release."""
    roomy = {_MAX: "40000", _LIMIT: "34000"}
    return [
        Case(history="empty", options={_MAX: "40000", _ESTIMATE: "300"}),
        Case(history="empty", options={_AUTO: "false", _SPLIT: "35", _MAX: "40000"}),
        Case(history="cow", options={**roomy, _THRESHOLD: "1.0"}),
        Case(history="cow", options={**roomy, _THRESHOLD: "0.0"}),
        Case(history="cow", options={**roomy, _THRESHOLD: "100", _ESTIMATE: "222"}),
        Case(history="cow", options={**roomy, _LIMIT: "14000"}, inserts={"a": 300, "b": 60}),
        Case(history="cow", options={**roomy, _LIMIT: "0"}, inserts={"a": 300, "c": 60}),
        Case(history="cow", options={**roomy, _AUTO: "false", _SPLIT: "45"}),
        Case(history="cow", options={**roomy, _COMMITS: "2", _THRESHOLD: "0.2", _METADATA: "3000"}),
        Case(history="cow", options={_MAX: "60000", _LIMIT: "50000"}, inserts={"a": 150, "b": 150}),
        Case(history="cow", options={_MAX: "60000", _LIMIT: "50000"}, inserts={"a": 290}, operation="upsert"),
        Case(history="cow", options=roomy, inserts={"a": 200, "c": 200}, operation="insert_overwrite"),
        Case(history="replaced", options={**roomy, _THRESHOLD: "0.1"}, inserts={"a": 300, "b": 200}),
        Case(history="clustering", options=roomy, inserts={"a": 300, "b": 200}),
        Case(history="mor", options=roomy),
        Case(history="mor", options={**roomy, _CANDIDATES: "3", _THRESHOLD: "0.0"}),
        Case(history="mor", options={**roomy, _CANDIDATES: "2", _LIMIT: "14000"}, inserts={"a": 300, "b": 80}),
        Case(history="mor", options={**roomy, _LIMIT: "0"}, inserts={"a": 300, "b": 80}),
        Case(history="mor_compacted", options={**roomy, _THRESHOLD: "0.3", _CANDIDATES: "2"}),
        Case(history="mor_compaction", options={**roomy, _CANDIDATES: "4"}, inserts={"a": 300, "b": 80}),
        Case(history="mor_clustering", options={**roomy, _CANDIDATES: "1"}, inserts={"a": 300, "b": 80}),
    ]


class Recorder:
    """Writes histories with one release, and what it makes of each case."""

    def __init__(self, spark: SparkSession, *, lake: Path) -> None:
        """Use an empty folder."""
        self._spark = spark
        self._lake = lake

    def write(
        self,
        path: Path,
        inserts: Mapping[str, int],
        *,
        first: int,
        table_type: str = COPY_ON_WRITE,
        operation: str = "insert",
        width: int = 1,
        options: Mapping[str, str] | None = None,
    ) -> None:
        """Write rows ``first`` and following to each partition, ``width`` times 128 characters without repetition."""
        parts = [
            f"SELECT concat('{day}-', id) AS id, '{day}' AS day, id AS ts,"
            f" concat({', '.join(f'''sha2(concat(id, '{day}{one}'), 512)''' for one in range(width))}) AS text"
            f" FROM range({first}, {first + count})"
            for day, count in inserts.items()
        ]
        written = {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "day",
            **_STEADY,
            **(options or {}),
        }
        frame = self._spark.sql(" UNION ALL ".join(parts)).coalesce(1)
        frame.write.format("hudi").options(**written).mode("append").save(str(path))

    def history(self, name: str) -> tuple[Path, str]:
        """Make a history once; return where it lies and its table type."""
        path = self._lake / name
        table_type = MERGE_ON_READ if name.startswith("mor") else COPY_ON_WRITE
        if name != "empty" and not path.exists():
            make: Callable[[Path, str], None] = getattr(
                self, f"_make_{name.removeprefix('mor_').replace('mor', 'cow')}"
            )
            make(path, table_type)
        return path, table_type

    def _make_cow(self, path: Path, table_type: str) -> None:
        """Six files in a, two in b, one of wide rows in c; on merge-on-read one of a and one of b have log files."""
        kept = {"table_type": table_type, "options": _NEW_FILES_OF_60}
        self.write(path, {"a": 320, "b": 70}, first=0, **kept)
        self.write(path, {"a": 40}, first=1000, **kept)
        self.write(path, {"c": 12}, first=0, width=4, **kept)
        if table_type == MERGE_ON_READ:
            self.write(path, {"a": 3, "b": 3}, first=0, operation="upsert", **kept)

    def _make_replaced(self, path: Path, table_type: str) -> None:
        """Several files in a and b, then b overwritten with wide rows."""
        kept = {"table_type": table_type, "options": _NEW_FILES_OF_60}
        self.write(path, {"a": 130, "b": 200}, first=0, **kept)
        self.write(path, {"b": 50}, first=0, operation="insert_overwrite", width=3, **kept)

    def _make_clustering(self, path: Path, table_type: str) -> None:
        """As the first, with a pending clustering of a's two smallest files and of b."""
        self._make_cow(path, COPY_ON_WRITE) if table_type == COPY_ON_WRITE else self._make_plain(path)
        for day in ("b",) if table_type == COPY_ON_WRITE else ("a",):
            self._service(path, "run_clustering", f"op => 'schedule', selected_partitions => '{day}'")

    def _make_plain(self, path: Path) -> None:
        kept = {"table_type": MERGE_ON_READ, "options": _NEW_FILES_OF_60}
        self.write(path, {"a": 100, "b": 70}, first=0, **kept)
        self.write(path, {"b": 30}, first=1000, **kept)

    def _make_compacted(self, path: Path, table_type: str) -> None:
        """Merge-on-read, its log files compacted, and a small delta commit after it."""
        self._make_cow(path, table_type)
        self._service(path, "run_compaction", "op => 'scheduleandexecute'")
        self.write(path, {"d": 9}, first=0, table_type=table_type, options=_NEW_FILES_OF_60, width=2)

    def _make_compaction(self, path: Path, table_type: str) -> None:
        """Merge-on-read with a pending compaction."""
        self._make_cow(path, table_type)
        self._service(path, "run_compaction", "op => 'schedule'")

    def _service(self, path: Path, procedure: str, arguments: str) -> None:
        options = ",".join(f"{key}={value}" for key, value in _STEADY.items() if "delta.commits" not in key)
        options += ",hoodie.compact.inline.max.delta.commits=1"
        self._spark.sql(f"CALL {procedure}(path => '{path}', {arguments}, options => '{options}')").collect()

    def record(self, number: int, case: Case) -> dict[str, Any]:
        """Insert into a copy and tell the files before and what became of them."""
        source, table_type = self.history(case.history)
        path = self._lake / f"case-{number}"
        if source.exists():
            shutil.copytree(source, path)
        before = _described(path, case.inserts) if path.exists() else {"commits": [], "partitions": {}}
        self.write(
            path,
            case.inserts,
            first=5000,
            table_type=table_type,
            operation=case.operation,
            width=case.width,
            options=case.options,
        )
        done = _last_write(path)
        shutil.rmtree(path)
        return {
            "history": case.history,
            "merge_on_read": table_type == MERGE_ON_READ,
            "options": dict(case.options),
            "operation": case.operation,
            "inserts": dict(case.inserts),
            "before": before,
            "written": done,
        }


def _described(path: Path, inserts: Mapping[str, int]) -> dict[str, Any]:
    table = HudiTable.open(str(path))
    timeline = table.timeline()
    view = table.view(timeline, listing="directory")
    partitions = {}
    for day in inserts:
        files = partition_files(view, day)
        slices = [
            [
                one.file_id,
                one.base_bytes,
                one.log_bytes,
                record_count(table.storage, path=f"{day}/{one.base_file.name}") if one.base_file else None,
            ]
            for one in files.slices
        ]
        partitions[day] = {
            "slices": slices,
            "clustering": sorted(files.clustering),
            "compaction": sorted(files.compaction),
            "groups": [files.base_group_count, files.group_count],
            "listing": list(files.listing_order),
        }
    commits = [
        [
            one.requested_time,
            str(one.action),
            one.operation,
            one.total_bytes,
            one.total_records,
            one.file_count,
            [list(pair) for pair in one.base_files],
        ]
        for one in commit_sizes(table, timeline)
    ]
    return {"commits": commits, "partitions": partitions}


def _last_write(path: Path) -> dict[str, list[list[Any]]]:
    """By partition, the files of the last write: file id, records in it, bytes."""
    table = HudiTable.open(str(path))
    metadata = table.commit_metadata(table.timeline().completed_writes[-1])
    return {
        day: sorted([one.file_id, one.records, one.bytes] for one in stats) for day, stats in metadata.written.items()
    }


def _session(bundle: Path) -> SparkSession:
    settings = {
        "spark.driver.extraClassPath": str(bundle),
        "spark.driver.memory": "1g",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("insert predictions")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _record_release(release: str, *, bundles: Path, only: str | None) -> None:
    spark = _session(bundles / BUNDLE.format(release=release))
    rows = []
    with tempfile.TemporaryDirectory(prefix="hudi-inserts-") as lake:
        recorder = Recorder(spark, lake=Path(lake))
        for number, case in enumerate(cases()):
            if only in (None, case.history):
                rows.append({"release": release, **recorder.record(number, case)})
    spark.stop()
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else []
    kept = [one for one in recorded if one["release"] != release]
    everything = sorted([*kept, *rows], key=lambda one: RELEASES.index(one["release"]))
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in everything)
    RECORDED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Record releases, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundles-dir", type=Path, required=True)
    parser.add_argument("--release", action="append", choices=RELEASES)
    parser.add_argument("--only", help="one history, to try it out")
    parser.add_argument("--here", action="store_true", help="record in this process")
    options = parser.parse_args()
    for release in options.release or RELEASES:
        if options.here:
            _record_release(release, bundles=options.bundles_dir, only=options.only)
            continue
        again = [sys.executable, __file__, "--bundles-dir", str(options.bundles_dir), "--release", release, "--here"]
        subprocess.run(again, check=True)


if __name__ == "__main__":
    main()
