"""A merge-on-read table of two days with log files, and what Hudi would put on its timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.unit.core.storage.builders import TableBuilder, at

FIRST, SECOND = "day=2026-11-01", "day=2026-11-02"


def two_days(tmp_path: Path, *, version: int = 9) -> TableBuilder:
    """Two days of one file group each: a base file of 1000 bytes and a log file of 100 on it."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"), version=version, merge_on_read=True)
    builder.commit(at(1), {day: [(f"{day}-0", 1000)] for day in (FIRST, SECOND)})
    builder.commit(at(2), logs={day: [(f"{day}-0", at(1), 100)] for day in (FIRST, SECOND)})
    return builder


def log_name(builder: TableBuilder, day: str) -> str:
    """The log file that the second commit wrote."""
    return f".{day}-0_{at(1) if builder.version < 8 else at(2)}.log.1_0-1-2"


def plan_compaction(builder: TableBuilder, instant: str, *, days: Iterable[str]) -> None:
    """Put a requested compaction of these days on the timeline, as Hudi does."""
    operations = [
        {
            "partitionPath": day,
            "fileId": f"{day}-0",
            "dataFilePath": f"{day}-0_0-1-2_{at(1)}.parquet",
            "deltaFilePaths": [log_name(builder, day)],
            "baseInstantTime": at(1),
        }
        for day in days
    ]
    builder.pending(instant, "compaction", {"operations": operations})


def complete_compaction(builder: TableBuilder, instant: str, *, days: Iterable[str]) -> None:
    """Write the new base files, and the commit that the plan ends in."""
    files = {day: [(f"{day}-0", 1050)] for day in days}
    builder.commit(instant, files, action="commit", operation="COMPACT", completion=instant)


def plan_clustering(
    builder: TableBuilder, instant: str, *, day: str, parameters: Mapping[str, str] | None = None
) -> None:
    """Put a requested clustering of a day's file group on the timeline, as Hudi does."""
    one = {
        "partitionPath": day,
        "fileId": f"{day}-0",
        "dataFilePath": f"/lake/{day}/{day}-0_0-1-2_{at(1)}.parquet",
        "deltaFilePaths": [f"/lake/{day}/{log_name(builder, day)}"],
    }
    action = "replacecommit" if builder.version < 8 else "clustering"
    content = {
        "operationType": "CLUSTER",
        "clusteringPlan": {
            "inputGroups": [{"slices": [one], "numOutputFileGroups": 1}],
            "strategy": {"strategyParams": dict(parameters or {})},
        },
    }
    builder.pending(instant, action, content)
