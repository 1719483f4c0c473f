"""The marks of tests that run Airflow itself."""

import pytest

AIRFLOW = [
    pytest.mark.airflow,
    # Airflow and what it depends on warn of each other's changes: only our own warnings are errors.
    pytest.mark.filterwarnings("default", "error:::airflow_hudi_maint"),
]
