"""Measure planning an expiry: against sorting the same rows by a key function, and in memory.

    python benchmarks/expiry_benchmark.py [--partitions 100000] [--many 640000] [--rounds 5]

The baseline is ``sorted(rows, key=...)`` where the key is what a planner needs of a row to put it into order: the
values of its partition path, each as its field's type (text, date, whole number). The rows come in the order of their
paths, as statistics have them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measure import Line, finish, median_of, ratio, report_sample, run_sample

if TYPE_CHECKING:
    from airflow_hudi_maint.core.model.policy import PolicySet
    from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics

SCRIPT = Path(__file__).name
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
MIB = 1024 * 1024
SHAPES = ("region/day/hour", "user/day")
_FIELD_TYPES = {"region": "string", "user": "long", "day": "date", "hour": "int"}
_USERS, _REGIONS, _HOURS = 100, 20, 24
_WORKS = ("sort", "plan", "plan and document")


def paths(shape: str, *, count: int) -> Iterator[str]:
    """The partition paths of a table: 20 regions and 24 hours a day, or 100 users; as many days as it takes."""
    wanted = 0
    for day in range(count):
        ts = date(2026, 11, 30) - timedelta(days=day)
        if shape == "user/day":
            found = [f"user={user}/day={ts}" for user in range(_USERS)]
        else:
            found = [
                f"region=r{region:02}/day={ts}/hour={hour}" for region in range(_REGIONS) for hour in range(_HOURS)
            ]
        yield from found[: count - wanted]
        wanted += len(found)
        if wanted >= count:
            return


def policies(shape: str) -> PolicySet:
    """Four policies, one of each kind and a default; together they expire about half of the table."""
    from airflow_hudi_maint.core.model.policy import PolicySet

    field, names = ("user", ("1", "2", "3")) if shape == "user/day" else ("region", ("r01", "r02", "r03"))
    return PolicySet.from_json(
        [
            {"partitionSpec": f"{field}=*/", "policy": "KEEP_BY_TIME", "policyValue": 120, "default": True},
            {"partitionSpec": f"{field}={names[0]}/", "policy": "KEEP_BY_COUNT", "policyValue": 100},
            {"partitionSpec": f"{field}={names[1]}/", "policy": "KEEP_BY_SIZE", "policyValue": 100_000 * MIB},
            {"partitionSpec": f"{field}={names[2]}/", "policy": "KEEP_BY_TIME", "policyValue": 7},
        ]
        if shape == "region/day/hour"
        else [
            {"partitionSpec": "/", "policy": "KEEP_BY_TIME", "policyValue": 500, "default": True},
            {"partitionSpec": f"{field}=*/", "policy": "KEEP_BY_COUNT", "policyValue": 300},
            {"partitionSpec": f"{field}={names[1]}/", "policy": "KEEP_BY_SIZE", "policyValue": 10_000 * MIB},
            {"partitionSpec": f"{field}={names[2]}/", "policy": "KEEP_BY_TIME", "policyValue": 7},
        ]
    )


def table(shape: str, *, count: int) -> TableStatistics:
    """Statistics of such a table: a day's partitions were last written on that day, each has one base file."""
    from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics, Watermark

    instants: dict[str, str] = {}

    def row(path: str, number: int) -> PartitionStatistics:
        day = path.partition("day=")[2][:10].replace("-", "")
        size = MIB + number % MIB
        return PartitionStatistics(
            partition_path=path,
            last_modified_instant=instants.setdefault(day, f"{day}090000000"),
            total_bytes=size,
            file_group_count=1,
            log_file_count=0,
            log_file_bytes=0,
            base_file_bytes=(size,),
            record_count=number,
        )

    rows = tuple(row(path, number) for number, path in enumerate(sorted(paths(shape, count=count))))
    return TableStatistics(
        base_path="/lake/trips",
        table_name="trips",
        table_version=9,
        table_type="COPY_ON_WRITE",
        watermark=Watermark(requested_time="20261130090000000"),
        gathered="full",
        reason="benchmark",
        gathered_at="2026-11-30T12:00:00+00:00",
        small_file_bytes=100 * MIB,
        partitions=rows,
    )


def sort(shape: str, statistics: TableStatistics) -> Mapping[str, Any]:
    """Sort the rows by the values of their paths, each as its type."""
    readers = {"string": str, "long": int, "int": int, "date": date.fromisoformat}
    fields = [(len(field) + 1, readers[_FIELD_TYPES[field]]) for field in shape.split("/")]

    def key(row: PartitionStatistics) -> tuple[Any, ...]:
        segments = row.partition_path.split("/")
        return tuple([read(segment[width:]) for segment, (width, read) in zip(segments, fields, strict=True)])

    return {"partitions": len(sorted(statistics.partitions, key=key))}


def plan(shape: str, statistics: TableStatistics, *, document: bool) -> Mapping[str, Any]:
    """Plan under four policies, with guards and totals; the document is what is written for people to read."""
    import json

    from airflow_hudi_maint.core.model.partition import PartitionScheme
    from airflow_hudi_maint.core.model.plan import PlanBasis
    from airflow_hudi_maint.core.planning.expiry import plan_expiry

    fields = tuple(shape.split("/"))
    made = plan_expiry(
        statistics,
        policies(shape),
        scheme=PartitionScheme(fields=fields, hive_style=True),
        field_types=_FIELD_TYPES,
        pending={},
        basis=PlanBasis(
            base_path="/lake/trips",
            table_name="trips",
            table_version=9,
            watermark=statistics.watermark,
            created_at=statistics.gathered_at,
        ),
        zone=UTC,
        now=NOW,
    )
    facts = dict(made.summary())
    if document:
        facts["document_bytes"] = len(json.dumps(made.to_json()))
    return facts


def measure(*, partitions: int, many: int, rounds: int) -> list[Line]:
    """Measure both shapes, print the figures and return the lines."""
    lines = []
    print("\n| table | work | CPU s | peak memory | expired of partitions |\n|---|---|---:|---:|---:|")
    for shape in SHAPES:
        turns = [{work: _sample(work, shape=shape, count=partitions) for work in _WORKS} for _ in range(rounds)]
        samples = {work: [turn[work] for turn in turns] for work in _WORKS}
        for work, found in samples.items():
            facts = found[-1].facts
            peak = median_of(found, field="peak_bytes") / MIB
            expired = f"{facts['expired']:,} of {facts['partitions']:,}" if "expired" in facts else ""
            cpu = median_of(found, field="cpu_seconds")
            print(f"| {partitions:,} × {shape} | {work} | {cpu:.3f} | {peak:.0f} MiB | {expired} |")
        name = f"planning ÷ sorting, {partitions:,} partitions by {shape}, CPU"
        lines.append(Line(name=name, figure=ratio(samples["plan"], samples["sort"]), limit=1.5))
    peak = _sample("plan", shape=SHAPES[0], count=many).peak_bytes / MIB
    lines.append(
        Line(name=f"peak memory, statistics and plan of {many:,} partitions", figure=peak, limit=600, unit="MiB")
    )
    return lines


def _sample(work: str, *, shape: str, count: int) -> Any:  # noqa: ANN401 a Sample
    return run_sample(SCRIPT, "--child", work, "--shape", shape, "--partitions", str(count))


def child(work: str, *, shape: str, count: int) -> None:
    """Do one work in this process and print what it took; making the rows, and imports, do not count."""
    from airflow_hudi_maint.core.planning import expiry  # noqa: F401 its import is not what is measured

    statistics = table(shape, count=count)
    policies(shape)
    if work == "sort":
        report_sample(lambda: sort(shape, statistics))
    else:
        report_sample(lambda: plan(shape, statistics, document=work != "plan"))


def main() -> None:
    """Measure, print, and fail when a limit is not kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--many", type=int, default=640_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", choices=_WORKS, help=argparse.SUPPRESS)
    parser.add_argument("--shape", choices=SHAPES, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child, shape=chosen.shape, count=chosen.partitions)
        return
    lines = measure(partitions=chosen.partitions, many=chosen.many, rounds=chosen.rounds)
    finish(lines)


if __name__ == "__main__":
    main()
