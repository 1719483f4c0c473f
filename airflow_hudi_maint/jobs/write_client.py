"""Hudi's own write client, for services that no option of a data frame and no procedure by path reaches."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request


@contextmanager
def write_client(spark: SparkSession, *, request: Request, options: Mapping[str, str]) -> Iterator[Any]:
    """Open a client on the request's table with these Hudi options, and close it."""
    context: Any = spark.sparkContext
    hudi = context._jvm.org.apache.hudi  # noqa: SLF001 the only door to Hudi's own classes
    engine = hudi.client.common.HoodieSparkEngineContext(context._jsc)  # noqa: SLF001
    builder = hudi.config.HoodieWriteConfig.newBuilder().withPath(request.base_path).forTable(request.table_name)
    client = hudi.client.SparkRDDWriteClient(engine, builder.withProps(dict(options)).build())
    try:
        yield client
    finally:
        client.close()
