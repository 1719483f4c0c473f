"""A Hudi without Spark that clusters hand-made tables: it rewrites real files, by the plan on the timeline."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from tests.unit.core.storage.builders import TableBuilder, at, parquet

DAYS = [f"day=2026-11-0{day}" for day in range(1, 4)]


def rows(number: int, *, count: int = 4) -> bytes:
    """A base file of rows with keys of their own."""
    extra = {
        "_hoodie_record_key": [f"{number}-{row}" for row in range(count)],
        "trip_id": [f"{number}-{row}" for row in range(count)],
        "fare": [float(number + row) for row in range(count)],
    }
    return parquet([at(number)] * count, extra=extra)


def three_days_of_rows(base_path: str) -> TableBuilder:
    """Three days of two small files each, written by two commits."""
    table = TableBuilder(base_path=base_path, settings={"hoodie.table.metadata.partitions": "files"})
    for number in (1, 2):
        files = {day: [(f"{day}-{number}-0", rows(10 * index + number))] for index, day in enumerate(DAYS)}
        table.commit(at(number), files)
    return table


@dataclass
class FakeHudi:
    """Does what the jobs ask for, as FakeEngine's ``act``; ``change`` may spoil what is written."""

    table: TableBuilder
    change: Callable[[pa.Table], pa.Table] = lambda rows: rows
    planned_at: str = at(40)
    also: Sequence[str] = ()
    """Partitions that its plans hold beside those that were asked for."""
    executes: bool = True
    executed: list[str] = field(default_factory=list)

    def __call__(self, request: JobRequest) -> None:
        if request.kind is JobKind.CLUSTER:
            partitions = [*map(str, request.arguments["partitions"] or [""]), *self.also]  # type: ignore[arg-type]
            self.schedule(self.planned_at, partitions)
            instants = [] if self.also else [self.planned_at]
        else:
            instants = list(map(str, request.arguments["instants"]))  # type: ignore[arg-type]
        for instant in instants:
            self.execute(instant)

    def schedule(self, instant: str, partitions: Sequence[str]) -> None:
        """Write a plan that has a group for each partition."""
        view = self.table.open().view(self.table.open().timeline(), partitions=partitions)
        groups = [
            {
                "slices": [
                    {
                        "partitionPath": path,
                        "fileId": one.file_id,
                        "dataFilePath": f"{self.table.base_path}/{path}/{one.base_file.name}",
                        "deltaFilePaths": [],
                    }
                    for one in view.latest_slices(path)
                    if one.base_file
                ],
                "numOutputFileGroups": 1,
            }
            for path in partitions
        ]
        plan = {"inputGroups": groups, "strategy": {"strategyClassName": "", "strategyParams": {}}}
        self.table.pending(instant, "clustering", {"operationType": "CLUSTER", "clusteringPlan": plan})

    def execute(self, instant: str) -> None:
        """Rewrite each partition of a plan into one file, and complete the instant; or die in the middle."""
        self.table.put(f"{self.table.timeline_folder}/{instant}.clustering.inflight", b"")
        if not self.executes:
            return
        plan = self._plan(instant)
        written, replaced = {}, {}
        for path in sorted(plan.partitions):
            inputs = [one for one in plan.inputs if one.partition_path == path]
            files = [self.table.storage.read_bytes(f"{path}/{one.base_file_name}") for one in inputs]
            whole = pa.concat_tables([pq.read_table(io.BytesIO(data)) for data in files])
            out = io.BytesIO()
            pq.write_table(self.change(whole), out)
            written[path] = [(f"{path}-{instant}-c", out.getvalue())]
            replaced[path] = [one.file_id for one in inputs]
        self.table.commit(instant, written, replaced=replaced, operation="CLUSTER")
        self.executed.append(instant)

    def _plan(self, instant: str) -> PendingPlan:
        table = self.table.open()
        found = table.timeline().find(instant)
        assert found is not None
        plan = table.instants.clustering_plan(found)
        assert plan is not None
        return plan
