"""The jars of a session: Hudi's bundle, what else was asked for, and the connector of the table's storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.bundle import check_spark, resolve_bundle
from airflow_hudi_maint.core.engines.s3a import connector_packages, is_on_s3

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from airflow_hudi_maint.core.engines.java import JavaInstallation
    from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation


def resolve_jars(
    bundle: str,
    *,
    spark_path: str,
    packages: Sequence[str],
    spark_conf: Mapping[str, str],
    java: JavaInstallation,
    pyspark: PysparkInstallation,
    cache_dir: Path | None,
    repositories: Sequence[str],
) -> tuple[Path, ...]:
    """Return the jars for a job on this path, the bundle's first. Each coordinate is fetched once into the cache.

    ``packages`` are coordinates, of which only the jar itself is taken and nothing that it depends on, or paths.

    Raises:
        BundleError: One does not resolve, the bundle is for another Spark, or no connector for S3 is known.
    """
    check_spark(bundle, spark_release=pyspark.release)
    connector = (
        connector_packages(pyspark=pyspark, packages=packages, spark_conf=spark_conf) if is_on_s3(spark_path) else ()
    )
    wanted = dict.fromkeys((bundle, *packages, *connector))
    return tuple(
        resolve_bundle(one, java=java, pyspark=pyspark, cache_dir=cache_dir, repositories=repositories)
        for one in wanted
    )
