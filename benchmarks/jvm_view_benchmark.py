"""Measure a full gather against Hudi's own file-system view, in a Spark session that is already warm.

    python benchmarks/jvm_view_benchmark.py [--table TABLE --bundle JAR --rounds 5]

The view loads all partitions of a table by directory listing (`loadAllPartitions`), as a Java writer would see it; the
start of the JVM and of Spark, and two runs to warm it up, are not counted. Needs Java, pyspark and a bundle of Hudi's.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from hudi_session import newest_bundle, session
from measure import Line, Sample, finish, median_of, peak_bytes_of, report_sample, run_sample
from statistics_benchmark import LOADED, gather
from synthetic_table import RECENT_PARTITIONS, write_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCRIPT = Path(__file__).name
_WARM_UPS = 2


def load_view(spark: SparkSession, base: Path) -> Mapping[str, Any]:
    """Open the table, load every partition into a view of its own, and time it."""
    jvm: Any = spark._jvm  # noqa: SLF001 the only way to Hudi's classes
    hudi = jvm.org.apache.hudi
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    engine = hudi.common.engine.HoodieLocalEngineContext(conf)
    listing = hudi.common.config.HoodieMetadataConfig.newBuilder().enable(False).build()  # noqa: FBT003 Java
    begun = time.perf_counter()
    client = hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(str(base)).build()
    timeline = client.getCommitsAndCompactionTimeline().filterCompletedAndCompactionInstants()
    manager = hudi.common.table.view.FileSystemViewManager
    view = manager.createInMemoryFileSystemViewWithTimeline(engine, client, listing, timeline)
    view.loadAllPartitions()
    seconds = time.perf_counter() - begun
    files = view.getLatestBaseFiles().count()
    view.close()
    return {"seconds": seconds, "files": files}


def jvm_child(base: Path, *, bundle: str, rounds: int) -> Mapping[str, Any]:
    """Measure the view in this process' own session."""
    spark = session(bundle)
    runs = [load_view(spark, base) for _ in range(_WARM_UPS + rounds)][_WARM_UPS:]
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]  # noqa: SLF001
    peak = peak_bytes_of(pid)
    spark.stop()
    return {"seconds": [one["seconds"] for one in runs], "files": runs[-1]["files"], "peak_bytes": peak}


def gather_child(base: Path) -> None:
    """Gather in full in this process, imports not counted."""
    for module in LOADED:
        importlib.import_module(module)
    report_sample(lambda: {"files": gather(base, previous=None).data_file_count})


def measure(base: Path, *, bundle: str, rounds: int) -> list[Line]:
    """Measure both, print the figures and return the lines."""
    jvm = run_sample(SCRIPT, "--child", "jvm", "--table", str(base), "--bundle", bundle, "--rounds", str(rounds)).facts
    samples: list[Sample] = [run_sample(SCRIPT, "--child", "gather", "--table", str(base)) for _ in range(rounds + 1)][
        1:
    ]
    if jvm["files"] != samples[-1].facts["files"]:
        sys.exit(f"The view has {jvm['files']} base files, the gather {samples[-1].facts['files']}")
    jvm_seconds, seconds = median(jvm["seconds"]), median_of(samples, field="wall_seconds")
    peak = max(one.peak_bytes for one in samples)
    print(f"\n| all of {jvm['files']:,} base files | wall s | peak memory |\n|---|---:|---:|")
    print(f"| Hudi's view, warm ({Path(bundle).name}) | {jvm_seconds:.3f} | {jvm['peak_bytes'] / 2**20:.0f} MiB |")
    print(f"| full gather, cold process | {seconds:.3f} | {peak / 2**20:.0f} MiB |")
    return [
        Line(name="full gather ÷ Hudi's view, wall", figure=seconds / jvm_seconds, limit=0.1),
        Line(name="memory of the full gather ÷ of the JVM", figure=peak / jvm["peak_bytes"], limit=0.125),
    ]


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, help="base path of a table; it is only read")
    parser.add_argument("--bundle", help="Hudi's Spark bundle; by default the newest that the set-up fetched")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=("jvm", "gather"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    chosen = arguments()
    bundle = chosen.bundle or newest_bundle()
    if chosen.child == "jvm":
        report_sample(lambda: jvm_child(chosen.table, bundle=bundle, rounds=chosen.rounds))
    elif chosen.child:
        gather_child(chosen.table)
    else:
        with tempfile.TemporaryDirectory(prefix="hudi-bench-") as folder:
            base = chosen.table or Path(folder) / "table"
            if not chosen.table:
                write_table(base, partitions=2000, files=20, commits=500, recent=RECENT_PARTITIONS)
            lines = measure(base, bundle=bundle, rounds=chosen.rounds)
        finish(lines)


if __name__ == "__main__":
    main()
