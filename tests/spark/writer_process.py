"""A Spark session with one Hudi bundle that writes and reads tables on request: the user's own pipeline, in tests.

Run as ``python writer_process.py BUNDLE_JAR[:JAR…]``; takes one JSON request a line and answers with one JSON line. It
shares nothing with the package under test.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id string, day string, value double, ts long"
OF_REGIONS = f"{SCHEMA}, region string"


def session(jars: str) -> SparkSession:
    """Start Spark with the settings that Hudi's own quick start gives."""
    return (
        SparkSession.builder.master("local[2]")
        .appName("writer")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraClassPath", jars)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )


class Writer:
    """The requests, one method each."""

    def __init__(self, spark: SparkSession) -> None:
        """Use this session for every request."""
        self.spark = spark

    def write(self, *, path: str, rows: list[list[Any]], operation: str, options: dict[str, str]) -> None:
        """Write rows (id, day, value, ts; of a table of two levels the region, too) in one commit."""
        schema = OF_REGIONS if len(rows[0]) == len(OF_REGIONS.split(",")) else SCHEMA
        frame = self.spark.createDataFrame([tuple(row) for row in rows], schema).coalesce(1)
        frame.write.format("hudi").options(**{**self._options(operation), **options}).mode("append").save(path)

    def counts(self, *, path: str) -> dict[str, int]:
        """Rows of a snapshot read, by partition path."""
        rows = self._read(path).groupBy("_hoodie_partition_path").count().collect()
        return {row[0]: row[1] for row in rows}

    def rows(self, *, path: str) -> list[list[Any]]:
        """All rows of a snapshot read, in order of id."""
        rows = self._read(path).select("id", "day", "value", "ts").orderBy("id").collect()
        return [list(row) for row in rows]

    def sql(self, *, statement: str) -> list[dict[str, Any]]:
        """Run one statement and return its rows."""
        return [json.loads(row) for row in self.spark.sql(statement).toJSON().collect()]

    def clean(self, *, path: str, retain_commits: int) -> list[dict[str, Any]]:
        """Run Hudi's cleaner."""
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS to_clean USING hudi LOCATION '{path}'")
        try:
            keep = f"clean_policy => 'KEEP_LATEST_COMMITS', retain_commits => {retain_commits}"
            return self.sql(statement=f"CALL run_clean(table => 'to_clean', {keep})")
        finally:
            self.spark.sql("DROP TABLE to_clean")

    def java_load(self, *, texts: list[str]) -> list[dict[str, str] | None]:
        """What ``java.util.Properties`` reads in each text; None where it refuses."""
        return [self._java_load(text) for text in texts]

    def java_store(self, *, values: list[dict[str, str]]) -> list[str]:
        """What ``java.util.Properties`` writes for each, without the comment with the date; entries in its order."""
        return [self._java_store(one) for one in values]

    def _java_load(self, text: str) -> dict[str, str] | None:
        java = self.spark._jvm.java  # type: ignore[union-attr] # noqa: SLF001 the way to the JVM
        properties = java.util.Properties()
        try:
            properties.load(java.io.StringReader(text))
        except Exception:  # noqa: BLE001 py4j's word for whatever Java throws
            return None
        return {name: properties.getProperty(name) for name in properties.stringPropertyNames()}

    def _java_store(self, values: dict[str, str]) -> str:
        java = self.spark._jvm.java  # type: ignore[union-attr] # noqa: SLF001
        properties, out = java.util.Properties(), java.io.ByteArrayOutputStream()
        for name, value in values.items():
            properties.setProperty(name, value)
        properties.store(out, None)
        return str(out.toString("ISO-8859-1")).partition("\n")[2]

    def _read(self, path: str) -> DataFrame:
        return self.spark.read.format("hudi").load(path)

    @staticmethod
    def _options(operation: str) -> dict[str, str]:
        return {
            "hoodie.table.name": "trips",
            "hoodie.datasource.write.operation": operation,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.partitionpath.field": "day",
            "hoodie.datasource.write.hive_style_partitioning": "true",
            "hoodie.parquet.small.file.limit": "0",
            "hoodie.metadata.index.column.stats.enable": "false",
            "hoodie.bloom.index.filter.type": "SIMPLE",
            "hoodie.index.bloom.num_entries": "100",
        }


def main() -> None:
    """Answer requests until standard input ends."""
    writer = Writer(session(sys.argv[1]))
    print(json.dumps({"ok": True, "result": "ready"}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            result = getattr(writer, request.pop("do"))(**request)
            answer = {"ok": True, "result": result}
        except Exception:  # noqa: BLE001 the test that asked shows it
            lines = traceback.format_exc().splitlines()
            # Java's stack frames are many, and what it says stands before them.
            answer = {"ok": False, "error": "\n".join(one for one in lines if not one.startswith("\tat "))[-4000:]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
