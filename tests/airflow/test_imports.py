"""What the scheduler pays for when it parses a DAG with our operators."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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
SENSORS = ("airflow_hudi_maint.sensors.commit", "airflow_hudi_maint.sensors.idle")
HEAVY = ("pyarrow", "pyspark", "fastavro", "matplotlib", "fsspec", "numpy", "pandas", "jinja2.sandbox")
MEASURE = f"""
import json, sys, time
from airflow.sdk import BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator, Context, PokeReturnValue, conf
import airflow.sdk.exceptions, airflow.sdk.log, airflow.triggers.base
before = set(sys.modules)
started = time.process_time()
for name in sys.argv[1:]:
    __import__(name)
seconds = time.process_time() - started
new = set(sys.modules) - before
print(json.dumps([seconds, sorted(name for name in {HEAVY!r} if name in new)]))
"""


def measure(modules: tuple[str, ...]) -> tuple[float, list[str]]:
    command = [sys.executable, "-c", MEASURE, *modules]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    seconds, heavy = json.loads(answer.stdout.splitlines()[-1])
    return seconds, heavy


@pytest.mark.parametrize("modules", [MODULES, SENSORS], ids=["operators", "sensors"])
def test_importing_all_adds_next_to_nothing(modules: tuple[str, ...]) -> None:
    """At most 50 ms of CPU on top of Airflow's own, the best of three since a machine may be busy; nothing heavy."""
    runs = [measure(modules) for _ in range(3)]
    assert [heavy for _, heavy in runs] == [[], [], []]
    assert min(seconds for seconds, _ in runs) <= 0.050
