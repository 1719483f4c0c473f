"""Keep Apache Hudi tables healthy from Apache Airflow.

This module imports nothing: Airflow reads provider metadata below it while it builds its own configuration.
"""

__version__ = "0.1.0"
