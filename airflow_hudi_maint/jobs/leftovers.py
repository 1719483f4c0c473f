"""Roll back pending replace commits that a job of ours left behind, with Hudi's own rollback.

Hudi 1.2.0 does not do it by itself when it drops partitions: a requested replace commit of a try that died would stay
until the table's next ordinary write, and block archival and every later step of maintenance meanwhile.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request
    from airflow_hudi_maint.jobs.write_client import write_client
else:
    from write_client import write_client

REPLACE_COMMIT = "replacecommit"
DROP = b"DELETE_PARTITION"


def pending_drops(spark: SparkSession, *, base_path: str, timeline_folder: str) -> list[str]:
    """Return the requested times of drops of partitions that are requested or inflight.

    Other replace commits are not ours to undo: an overwrite of another writer and, on table version 6, a clustering
    have the same action. Only their files tell; ``timeline_folder`` is relative to the base path.
    """
    context: Any = spark.sparkContext
    hudi = context._jvm.org.apache.hudi  # noqa: SLF001 the only door to Hudi's own classes
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(context._jsc.hadoopConfiguration())  # noqa: SLF001
    client = hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(base_path).build()
    instants = client.getActiveTimeline().filterInflightsAndRequested().getInstants()
    times = [requested_time(one) for one in instants if one.getAction() == REPLACE_COMMIT]
    folder = f"{base_path.rstrip('/')}/{timeline_folder}"
    return [time for time in times if any(DROP in _content(spark, path=path) for path in _pending_files(folder, time))]


def _pending_files(folder: str, instant: str) -> list[str]:
    return [f"{folder}/{instant}.{REPLACE_COMMIT}.{state}" for state in ("requested", "inflight")]


def _content(spark: SparkSession, *, path: str) -> bytes:
    """Return a small file's bytes; none when it is not there."""
    context: Any = spark.sparkContext
    location = context._jvm.org.apache.hadoop.fs.Path(path)  # noqa: SLF001
    files = location.getFileSystem(context._jsc.hadoopConfiguration())  # noqa: SLF001
    if not files.exists(location):
        return b""
    stream = files.open(location)
    try:
        return bytes(context._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))  # noqa: SLF001
    finally:
        stream.close()


def roll_back(spark: SparkSession, *, request: Request, instants: Sequence[str]) -> None:
    """Roll back these instants, newest first: Hudi refuses to undo what a later one may rest on."""
    if not instants:
        return
    with write_client(spark, request=request, options=request.write_options) as client:
        for instant in sorted(instants, reverse=True):
            print(f"Rolling back {instant}, which an earlier try left behind", flush=True)
            client.rollback(instant)


def requested_time(instant: Any) -> str:  # noqa: ANN401 py4j makes its methods up
    """Return the requested time of one of Hudi's instants."""
    # Hudi 1.0 renamed the method, and py4j cannot tell whether there is one; the text begins with the time in both.
    found = re.search(r"\d{14,17}", instant.toString())
    if found is None:
        raise ValueError(f"Instant {instant.toString()} shows no time")
    return found[0]
