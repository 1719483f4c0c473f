"""The pending clustering plans of a Hudi table, as Hudi itself reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.leftovers import requested_time
else:
    from leftovers import requested_time


def pending_clusterings(spark: SparkSession, *, base_path: str) -> dict[str, set[str]]:
    """Return the partitions that each pending clustering plan holds, by the plan's requested time."""
    context: Any = spark.sparkContext
    hudi = context._jvm.org.apache.hudi  # noqa: SLF001 the only door to Hudi's own classes
    conf = hudi.hadoop.fs.HadoopFSUtils.getStorageConfWithCopy(context._jsc.hadoopConfiguration())  # noqa: SLF001
    client = hudi.common.table.HoodieTableMetaClient.builder().setConf(conf).setBasePath(base_path).build()
    pairs = hudi.common.util.ClusteringUtils.getAllPendingClusteringPlans(client).iterator()
    found: dict[str, set[str]] = {}
    while pairs.hasNext():
        pair = pairs.next()
        groups = pair.getRight().getInputGroups()
        found[requested_time(pair.getLeft())] = {
            one.getPartitionPath() for group in groups for one in group.getSlices()
        }
    return found
