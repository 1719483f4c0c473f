"""Scripts that run inside Spark: standard library and pyspark only."""
