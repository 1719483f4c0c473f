"""Run the maintenance DAG in an Airflow of the demo's own, and show what its tasks say."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from demo.processes import DemoError, run_shown

DAG_ID = "hudi_table_maintenance"
CONNECTION_ID = "hudi_demo"
WIDTH = 150

_TASK_BEGINS = "[DAG TEST] starting task_id="
_OURS = "airflow_hudi_maint"
_NOISE = "No tasks to run. unrunnable tasks"


@dataclass(kw_only=True)
class TaskLines:
    """Chooses what to show of Airflow's log: each task's name, and what our operators say in their log groups."""

    in_group: bool = False

    def __call__(self, line: str) -> str | None:
        """Return what to print of one line of the log.

        Raises:
            DemoError: A task failed. Airflow would try it again in five minutes; the demo stops at once.
        """
        entry = _parse(line)
        event = str(entry.get("event", ""))
        if event.startswith(_TASK_BEGINS):
            return f"  {event.removeprefix(_TASK_BEGINS).split()[0]}"
        if event.startswith("Task failed with exception"):
            raise DemoError(f"A task failed: {_cause(entry)}")
        if entry.get("level") in ("error", "critical"):
            return _cut(f"    {entry['level']}: {event}")
        if _OURS not in str(entry.get("logger", "")):
            return None
        if event.startswith("::group::"):
            self.in_group = True
            return None
        if event.startswith("::endgroup::"):
            self.in_group = False
            return None
        return _cut(f"    {event}") if self.in_group else None


def make_environment(*, home: Path, dags: Path, connection: Mapping[str, object]) -> dict[str, str]:
    """Return the variables for an Airflow that uses SQLite in ``home`` and knows one connection."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("AIRFLOW_")}
    # Where the Hudi bundle is cached is a setting of this package, not of Airflow.
    kept |= {key: value for key, value in os.environ.items() if key.startswith("AIRFLOW_HUDI_MAINT_")}
    return kept | {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__LOGGING__JSON_LOGS": "True",
        # Two loaded cores answer late; the default of 5 s then fails tasks that are fine.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        f"AIRFLOW_CONN_{CONNECTION_ID.upper()}": json.dumps(connection),
    }


def migrate_database(*, env: Mapping[str, str], log: Path) -> None:
    """Make Airflow's metadata database."""
    run_shown([sys.executable, "-m", "airflow", "db", "migrate"], env=env, log=log, show=lambda _: None)


def run_maintenance(*, conf: Mapping[str, object], env: Mapping[str, str], log: Path) -> None:
    """Run the DAG once, in this machine's Airflow without a scheduler; raises DemoError when a task fails."""
    command = [sys.executable, "-m", "airflow", "dags", "test", DAG_ID, "--conf", json.dumps(conf)]
    run_shown(command, env=env, log=log, show=TaskLines())


def _parse(line: str) -> Mapping[str, object]:
    """Read a line of a JSON log; a line that is none says nothing."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) and _NOISE not in str(entry.get("event", "")) else {}


def _cause(entry: Mapping[str, object]) -> str:
    """Return the exception that a log entry ends with, as text."""
    chain = entry.get("exception")
    if isinstance(chain, list) and chain and isinstance(chain[0], dict):
        return f"{chain[0].get('exc_type')}: {chain[0].get('exc_value')}"
    return str(chain or entry.get("event"))


def _cut(text: str) -> str:
    first, *rest = text.splitlines()
    return first if len(first) <= WIDTH and not rest else f"{first[: WIDTH - 2]} …"
