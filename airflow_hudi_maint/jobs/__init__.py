"""Scripts that run inside Spark: standard library and pyspark only, but for ``merge_files`` (docs/architecture.md)."""
