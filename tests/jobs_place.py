"""Jobs that are tiny and know no Hudi, for trying engines on real clusters."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE, resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.job_code import JOBS
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from airflow_hudi_maint.core.storage.job_exchange import StorageExchange

SECRET = "hush-hush-hush"  # noqa: S105
_SCRIPT = """
import os, time
from session import main

def job(spark, request):
    wanted = request.arguments
    if wanted.get("fail"):
        raise ValueError("as it was asked to")
    numbers = spark.range(100).repartition(2)
    found = numbers.count()
    time.sleep(wanted.get("seconds", 0))
    conf = spark._jsc.hadoopConfiguration()
    return [{"count": found, "name": spark.sparkContext.appName, "secret": conf.get("fs.s3a.secret.key"),
             "option": request.write_options.get("hoodie.write.lock.token"),
             "zone": spark._jvm.java.util.TimeZone.getDefault().getID()}]

if __name__ == "__main__":
    main("delete_partitions", job=job)
"""


@dataclass(frozen=True, kw_only=True)
class JobsPlace:
    """One table, and the jobs on it."""

    base_path: Path
    jobs_dir: Path
    bundle: Path

    def exchange(self) -> StorageExchange:
        """Where a job on a cluster and its caller meet."""
        return StorageExchange.open(str(self.base_path))

    def request(self, name: str, **arguments: Any) -> JobRequest:
        """A job of this name: it may ``fail``, or sleep for ``seconds``."""
        return JobRequest(
            kind=JobKind.DELETE_PARTITIONS,
            base_path=str(self.base_path),
            table_name="trips",
            write_options={"hoodie.write.lock.token": SECRET},
            arguments=arguments,
            name=name,
        )


def written_place(root: Path) -> dict[str, Path]:
    """Write the job's script and the bare folder of a table; returns the fields of a place."""
    jobs = root / "jobs"
    shutil.copytree(JOBS, jobs, ignore=shutil.ignore_patterns("__pycache__"))
    (jobs / "delete_partitions.py").write_text(_SCRIPT, encoding="utf-8")
    (root / "trips" / ".hoodie").mkdir(parents=True)
    bundle = resolve_bundle(DEFAULT_BUNDLE, java=find_java(), pyspark=find_pyspark(sys.executable))
    return {"base_path": root / "trips", "jobs_dir": jobs, "bundle": bundle}
