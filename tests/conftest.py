"""What all tests share: a home for Airflow that is nobody's own, and how Hypothesis searches."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent


def _give_airflow_a_home() -> None:
    """Point Airflow, before anything imports it, at a folder that goes with this session.

    Importing Airflow is enough to make it write a configuration into its home. Nothing is imported or made here but an
    empty folder, so tests without Airflow pay nothing.
    """
    home = Path(tempfile.mkdtemp(prefix="airflow-hudi-maint-tests-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        # Two loaded cores answer late; the default of 5 s then fails tasks that are fine.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
    }


_give_airflow_a_home()

# On a loaded machine a deadline finds the load. CI looks at the same examples every time, so that red means a change.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))
