"""Merge small files of a plain directory: the groups of one order, a few to each task of one Spark job.

Arguments: ``root`` (the directory as fsspec reads it), ``order`` (the path of the order below it), ``code`` (the
address of the archive of this package's core, as Spark reads it). ``storage_options`` are those of the request.

This is the one job that uses the package's own code: Spark's reader and writer would reorder rows and lose the types
and the metadata that a merge has to keep. That code needs Python 3.11, fsspec and pyarrow, where the driver and where
the executors run; it comes by the archive and is imported after that has arrived. This module itself still has to be
read by Python 3.9, so as to say what is missing.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, main
else:
    from session import main

KIND = "merge_files"
OLDEST_PYTHON = (3, 11)
NEEDED = ("fsspec", "pyarrow")


def merge_files(spark: SparkSession, request: Request) -> list[Row]:
    """Write every group beside, and return a row for each: what was written where, or why it was not."""
    if sys.version_info < OLDEST_PYTHON:
        raise RuntimeError(f"The Python of Spark is {sys.version.split()[0]}; merging files needs 3.11 or newer")
    root, options = request.arguments["root"], request.storage_options
    context = spark.sparkContext
    context.addPyFile(request.arguments["code"])

    from airflow_hudi_maint.core.merging.group_tasks import read_order

    order = read_order(root, request.arguments["order"], storage_options=options)
    tasks, settings, run = order["tasks"], order["settings"], order["run"]

    def write(task: list[dict[str, Any]]) -> list[Row]:
        from pyspark import TaskContext

        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            said = f"The executors' Python ({sys.executable}) has no {' and no '.join(missing)}: install it there"
            return [
                {"number": one["number"], "error_class": "InvalidSettingError", "error_message": said} for one in task
            ]

        from airflow_hudi_maint.core.merging.group_tasks import write_task

        attempt = TaskContext.get().taskAttemptId()  # type: ignore[union-attr]  # this runs in a task
        return write_task(root, task, storage_options=options, settings=settings, run=run, attempt=attempt)

    context.setJobDescription(f"Merging {sum(map(len, tasks))} groups of small files")
    return context.parallelize(tasks, max(1, len(tasks))).flatMap(write).collect()


if __name__ == "__main__":
    main(KIND, job=merge_files)
