"""What the scheduler pays for when it parses a DAG with our operators."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.airflow.environment import ROOT
from tests.airflow.marks import AIRFLOW

pytestmark = AIRFLOW

MODULES = (
    "airflow_hudi_maint.operators.statistics",
    "airflow_hudi_maint.operators.expiry",
    "airflow_hudi_maint.operators.clustering",
    "airflow_hudi_maint.operators.small_files",
    "airflow_hudi_maint.operators.report",
)
HEAVY = ("pyarrow", "pyspark", "fastavro", "matplotlib", "fsspec", "numpy", "pandas", "jinja2.sandbox")
MEASURE = f"""
import json, sys, time
from airflow.sdk import BaseHook, BaseOperator, BaseOperatorLink, Context
import airflow.sdk.exceptions, airflow.sdk.log
before = set(sys.modules)
started = time.process_time()
for name in {MODULES!r}:
    __import__(name)
seconds = time.process_time() - started
new = set(sys.modules) - before
print(json.dumps([seconds, sorted(name for name in {HEAVY!r} if name in new)]))
"""


def measure() -> tuple[float, list[str]]:
    answer = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, cwd=ROOT)
    seconds, heavy = json.loads(answer.stdout.splitlines()[-1])
    return seconds, heavy


def test_importing_all_operators_adds_next_to_nothing() -> None:
    """At most 50 ms of CPU on top of Airflow's own, the best of three since a machine may be busy; nothing heavy."""
    runs = [measure() for _ in range(3)]
    assert [heavy for _, heavy in runs] == [[], [], []]
    assert min(seconds for seconds, _ in runs) <= 0.050
