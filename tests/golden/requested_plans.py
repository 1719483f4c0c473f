"""Remake ``requested_plans.json``: what each release of Hudi writes when it schedules a clustering itself.

One partition of a merge-on-read table with a slice of two log files and one without any, sorted by two columns in
z-order. Run ``python -m tests.golden.requested_plans``; it starts the three releases of Hudi one after another.
"""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path
from typing import Any

import fastavro

from airflow_hudi_maint.core.storage.table import HudiTable
from tests.spark.tables import DAYS, rows
from tests.spark.writer import HudiWriter

TRUTH = Path(__file__).with_suffix(".json")
BASE_PATH = "/lake/trips"
"""What stands for the folder in which the table was made."""
RELEASES = ("0.15.0", "1.0.2", "1.2.0")

_DAY = DAYS[0]
_OPTIONS = {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.compact.inline": "false"}


def requested_plan(release: str, path: Path) -> dict[str, Any]:
    """Make the table with this release and have it schedule; the record, its file name, and the sizes of all files."""
    writer = HudiWriter(release)
    try:
        for commit in range(2):
            writer.write(path, rows(commit, day=_DAY), operation="insert", options=_OPTIONS)
        for number in range(2):
            writer.write(path, rows(0, day=_DAY, value=5.0 + number), operation="upsert", options=_OPTIONS)
        ordered = "order => 'value,id', order_strategy => 'zorder'"
        chosen = f"selected_partitions => 'day={_DAY}'"
        writer.sql(f"CALL run_clustering(path => '{path}', op => 'schedule', {ordered}, {chosen})")
    finally:
        writer.close()
    table = HudiTable.open(str(path))
    (plan,) = table.pending_plans(table.timeline())
    file = path / table.config.timeline_folder / plan.instant.file_name
    (record,) = fastavro.reader(io.BytesIO(file.read_bytes()))
    sizes = {entry.name: entry.bytes for _, entries in table.listings() for entry in entries}
    return {
        "table_version": table.config.table_version,
        "file": file.name,
        "record": json.loads(json.dumps(record).replace(str(path), BASE_PATH)),
        "files": {name: size for name, size in sorted(sizes.items()) if _is_data(name)},
    }


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") or (".log." in name and not name.endswith(".crc"))


def main() -> None:
    """Write the truth."""
    found = {}
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as folder:
            found[release] = requested_plan(release, Path(folder) / "trips")
    TRUTH.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
