"""Give Airflow a home of its own, which goes with this session. Imported by ``tests/conftest.py``, before Airflow is.

Importing Airflow is enough to make it write a configuration into its home. Nothing is imported or made here but an
empty folder, so tests without Airflow pay nothing.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(tempfile.mkdtemp(prefix="hudi-maint-airflow-"))
VARIABLES = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    # Under load the default of 5 seconds fails tasks that are in order.
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
}

if "airflow" in sys.modules:
    raise RuntimeError("Airflow was imported before its home was set; import tests.airflow.environment first")
os.environ.update(VARIABLES)
atexit.register(shutil.rmtree, HOME, ignore_errors=True)
