"""Bring partitions of a Hudi table back as they were at an instant: read as of it, and insert what was read.

Arguments: ``partitions`` (relative partition paths), ``as_of`` (an instant before they were dropped),
``partition_columns`` (their columns, in the order of the path, where each level of a path is a column's value as text;
else none), ``marker`` (a text that the commit carries in its extra metadata under :data:`MARKER_KEY`, by which a retry
recognises it), and what :func:`writing.writer_options` needs. Rows whose keys are there again are left alone. The rows
that are returned compare what was read with what is there now.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, main
    from airflow_hudi_maint.jobs.writing import checked_partitions, data_columns, quoted, writer_options
else:
    from session import main
    from writing import checked_partitions, data_columns, quoted, writer_options

KIND = "restore_partitions"
MARKER_KEY = "airflow_hudi_maint.restores"
PRUNED_TYPES = frozenset({"string", "int", "bigint", "date"})
"""Types of partition columns whose text is surely what stands in the path."""
KEY, PARTITION = "_hoodie_record_key", "_hoodie_partition_path"
KEEPS_FIELD_NAMES_SINCE = 9
"""Table version from which a complex key generator writes ``field:value`` even for one field."""


def restore_partitions(spark: SparkSession, request: Request) -> list[Row]:
    """Insert what the partitions held, in one commit, and compare counts and a digest of keys."""
    partitions = checked_partitions(request)
    as_of = str(request.arguments["as_of"])
    then = _rows_of(spark, request, partitions=partitions, as_of=as_of)
    now = _rows_of(spark, request, partitions=partitions, as_of=None)
    by = [KEY] if request.names("record_key_fields") else data_columns(then)
    wanted = _sums(then, by=by)
    if not wanted:
        raise ValueError(f"No row of these partitions was found as of {as_of}: there is nothing to restore")
    there = now.select(KEY, PARTITION)
    missing = then.join(there, on=[KEY, PARTITION], how="left_anti") if there.head(1) else then
    options = {
        **writer_options(request, operation="insert"),
        **_key_options(request, sample=then),
        # What is read was one table's state: nothing in it is a double of another row.
        "hoodie.combine.before.insert": "false",
        "hoodie.merge.allow.duplicate.on.inserts": "true",
        "hoodie.datasource.write.commitmeta.key.prefix": MARKER_KEY,
        MARKER_KEY: str(request.arguments["marker"]),
    }
    written = missing.select(*quoted(data_columns(then)))
    written.write.format("hudi").options(**options).mode("append").save(request.base_path)
    found = _sums(_rows_of(spark, request, partitions=partitions, as_of=None), by=by)
    return [
        {
            "partition": partition,
            "records_then": wanted.get(partition, (0, 0))[0],
            "records_now": found.get(partition, (0, 0))[0],
            "digest_then": str(wanted.get(partition, (0, 0))[1]),
            "digest_now": str(found.get(partition, (0, 0))[1]),
        }
        for partition in partitions
    ]


def _rows_of(spark: SparkSession, request: Request, *, partitions: list[str], as_of: str | None) -> DataFrame:
    """The rows of the partitions, at an instant or (None) now."""
    from pyspark.sql.functions import col

    reader = spark.read.format("hudi")
    frame = (reader.option("as.of.instant", as_of) if as_of else reader).load(request.base_path)
    chosen = frame.where(col(PARTITION).isin(partitions))
    columns = request.names("partition_columns")
    types = dict(frame.dtypes)
    prunable = bool(columns) and all(types.get(name) in PRUNED_TYPES for name in columns)
    return chosen.where(_pruning(partitions, columns=columns)) if prunable else chosen


def _pruning(partitions: list[str], *, columns: list[str]) -> Column:
    """A condition on the partition columns alone, by which Spark opens no other partition's files."""
    from pyspark.sql.functions import col

    def holds(partition: str) -> Column:
        values = [level.partition("=")[2] if "=" in level else level for level in partition.split("/")]
        pairs = zip(columns, values)  # noqa: B905 the caller checked the depth, and Python 3.9 has no strict
        return reduce(and_, [col(f"`{name}`").cast("string") == value for name, value in pairs])

    return reduce(or_, map(holds, partitions))


def _sums(frame: DataFrame, *, by: list[str]) -> dict[str, tuple[int, int]]:
    """The number of rows and a digest of their keys, by partition; the order of rows does not matter."""
    from pyspark.sql.functions import bit_xor, col, count, struct, to_json, xxhash64

    # Of a JSON text where there is no key: Spark hashes no maps.
    what = xxhash64(col(KEY)) if by == [KEY] else xxhash64(to_json(struct(*quoted(by))))
    rows = frame.groupBy(PARTITION).agg(count("*"), bit_xor(what)).collect()
    return {row[0]: (row[1], row[2]) for row in rows}


def _key_options(request: Request, *, sample: DataFrame) -> dict[str, str]:
    """Options by which a complex key generator of one field writes keys as the table has them.

    Releases differ in whether the field's name stands before the value (HUDI-9666), and the table does not say.
    """
    fields = request.names("record_key_fields")
    generator = str(request.arguments.get("keygenerator") or "")
    if not generator.endswith(("ComplexKeyGenerator", "ComplexAvroKeyGenerator")) or len(fields) != 1:
        return {}
    first = sample.select(KEY).head(1)
    if not first:
        return {}
    named = str(first[0][0]).startswith(f"{fields[0]}:")
    version = int(request.write_options.get("hoodie.write.table.version", "0"))
    if not named and version >= KEEPS_FIELD_NAMES_SINCE:
        raise ValueError(
            f"Keys of this table lack the name of the field {fields[0]!r}, and on table version {version} Hudi writes "
            "it: the restored rows would be doubles at the next upsert. Restore with the release that wrote the table"
        )
    return {"hoodie.write.complex.keygen.new.encoding": "false" if named else "true"}


if __name__ == "__main__":
    main(KIND, job=restore_partitions)
