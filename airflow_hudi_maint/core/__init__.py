"""The common core: imports neither Airflow nor Spark."""
