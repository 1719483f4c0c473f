"""What the scheduler pays for when it parses a DAG with our operators."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.airflow.environment import ROOT
from tests.airflow.marks import AIRFLOW

pytestmark = AIRFLOW


def modules_of(package: str) -> tuple[str, ...]:
    folder = ROOT / "airflow_hudi_maint" / package
    return tuple(f"airflow_hudi_maint.{package}.{path.stem}" for path in sorted(folder.glob("[a-z]*.py")))


MODULES, SENSORS = modules_of("operators"), modules_of("sensors")
HEAVY = ("pyarrow", "pyspark", "fastavro", "matplotlib", "fsspec", "numpy", "pandas", "jinja2.sandbox")
SHARE = 0.025
"""Of the CPU time that Airflow's own import takes in the same process, so that the machine does not matter."""

MEASURE = f"""
import json, sys, time
started = time.process_time()
from airflow.sdk import BaseHook, BaseOperator, BaseOperatorLink, BaseSensorOperator, Context, PokeReturnValue, conf
import airflow.sdk.exceptions, airflow.sdk.log, airflow.triggers.base, airflow.providers.standard.operators.hitl
before = set(sys.modules)
between = time.process_time()
for name in sys.argv[1:]:
    __import__(name)
share = (time.process_time() - between) / (between - started)
new = set(sys.modules) - before
print(json.dumps([share, sorted(name for name in {HEAVY!r} if name in new)]))
"""


def measure(modules: tuple[str, ...]) -> tuple[float, list[str]]:
    command = [sys.executable, "-c", MEASURE, *modules]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    share, heavy = json.loads(answer.stdout.splitlines()[-1])
    return share, heavy


@pytest.mark.parametrize("modules", [MODULES, SENSORS], ids=["operators", "sensors"])
def test_importing_all_adds_next_to_nothing(modules: tuple[str, ...]) -> None:
    """At most 2.5 % on top of Airflow's own, 60 ms where that takes 2.5 s; the best of three."""
    runs = [measure(modules) for _ in range(3)]
    assert [heavy for _, heavy in runs] == [[], [], []]
    assert min(share for share, _ in runs) <= SHARE
