"""These tests import Airflow, but need none of its services."""

import tests.airflow.environment  # noqa: F401 before Airflow is imported
