"""A Spark session with Hudi, as a person would open one, for what our own work is measured against."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CACHE = os.environ.get("AIRFLOW_HUDI_MAINT_CACHE", "~/.cache/airflow-hudi-maint")
SETTINGS = {
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
}


def newest_bundle() -> str:
    """The newest bundle that the set-up fetched."""
    found = sorted(Path(_CACHE).expanduser().glob("jars/hudi-spark*-bundle_*.jar"))
    if not found:
        sys.exit(f"No bundle of Hudi's in {_CACHE}/jars; give one with --bundle")
    return str(found[-1])


def session(bundle: str) -> SparkSession:
    """A local session with Hudi's classes, its procedures included."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("benchmark")
    for key, value in {**SETTINGS, "spark.driver.extraClassPath": bundle}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
