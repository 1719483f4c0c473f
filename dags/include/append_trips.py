"""Append generated trips to a Hudi table with Hudi's own Spark writer.

TRIPS_BASE_PATH says where the table is, TRIPS_ROWS how many rows to append.
"""

from __future__ import annotations

import os
import sys
import time

from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE, resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark

OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "trip_id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.datasource.write.precombine.field": "ended_at",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.datasource.write.operation": "insert",
    # Each run leaves small files, as many an ingestion does: maintenance has something to do.
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.insert.shuffle.parallelism": "2",
}


def main(base_path: str, *, rows: int) -> None:
    """Append the rows to today's partition and those of the two days before."""
    java = find_java()
    jar = resolve_bundle(DEFAULT_BUNDLE, java=java, pyspark=find_pyspark(sys.executable))
    os.environ["JAVA_HOME"] = str(java.home)
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.appName("append-trips")
        .master("local[2]")
        .config("spark.jars", str(jar))
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    trips = spark.range(rows).selectExpr(
        f"concat('{time.time_ns()}-', id) AS trip_id",
        "cast(date_sub(current_date(), cast(id % 3 AS int)) AS string) AS day",
        "current_timestamp() AS ended_at",
        "round(rand() * 40, 2) AS kilometres",
    )
    trips.write.format("hudi").options(**OPTIONS).mode("append").save(base_path)
    spark.stop()
    print(f"Appended {rows} rows to {base_path}")


if __name__ == "__main__":
    main(os.environ["TRIPS_BASE_PATH"], rows=int(os.environ["TRIPS_ROWS"]))
