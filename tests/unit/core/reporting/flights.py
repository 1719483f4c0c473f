"""Made-up statistics of a table like the demo's: 3 origins × 12 months, 4 commits, then expiry and clustering."""

from __future__ import annotations

from airflow_hudi_maint.core.model.partition import PartitionSpec
from airflow_hudi_maint.core.model.plan import (
    ClusteringEntry,
    ClusteringPlan,
    ClusteringSettings,
    Decision,
    ExpiryEntry,
    ExpiryPlan,
    PlanBasis,
    PlannedGroup,
    PlannedInput,
)
from airflow_hudi_maint.core.model.policy import PolicyKind, PolicySet, TTLPolicy
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics, Watermark

BASE_PATH = "/lake/flights"
FOLDER = f"{BASE_PATH}/.hoodie/.airflow_hudi_maint"
START, EXPIRED_AT, SCHEDULED_AT = "20261130061204117", "20261130061502250", "20261130061533871"
SMALL_FILE_BYTES = 700 * 1024
BLOOM_FILTER_BYTES = 431_380  # every base file of Hudi carries one
KEPT_MONTHS = 9


def paths() -> list[str]:
    return [f"origin={origin}/month={month}" for origin in ("EWR", "JFK", "LGA") for month in range(1, 13)]


def expires(path: str) -> bool:
    return int(path.rsplit("=", 1)[1]) <= 12 - KEPT_MONTHS


def partition(path: str, *, file_bytes: tuple[int, ...], instant: str = START) -> PartitionStatistics:
    return PartitionStatistics(
        partition_path=path,
        last_modified_instant=instant,
        total_bytes=sum(file_bytes),
        file_group_count=len(file_bytes),
        log_file_count=0,
        log_file_bytes=0,
        base_file_bytes=tuple(sorted(file_bytes)),
    )


def table(*partitions: PartitionStatistics, instant: str = START) -> TableStatistics:
    return TableStatistics(
        base_path=BASE_PATH,
        table_name="flights",
        table_version=9,
        table_type="COPY_ON_WRITE",
        watermark=Watermark(requested_time=instant, completion_time=instant),
        gathered="full",
        reason="there are no earlier statistics",
        gathered_at="2026-11-30T06:16:20+00:00",
        small_file_bytes=SMALL_FILE_BYTES,
        partitions=partitions,
    )


def sizes_before(path: str) -> tuple[int, ...]:
    season = 80_000 + 4_700 * ((len(path) * 7 + sum(map(ord, path)) * 13) % 17)
    return tuple(BLOOM_FILTER_BYTES + season + 9_000 * commit for commit in range(4))


def size_after(path: str) -> int:
    return BLOOM_FILTER_BYTES + round(0.82 * sum(size - BLOOM_FILTER_BYTES for size in sizes_before(path)))


BEFORE = table(*(partition(path, file_bytes=sizes_before(path)) for path in paths()))
AFTER = table(
    *(partition(path, file_bytes=(size_after(path),)) for path in paths() if not expires(path)), instant=SCHEDULED_AT
)

BASIS = PlanBasis(
    base_path=BASE_PATH,
    table_name="flights",
    table_version=9,
    watermark=BEFORE.watermark,
    created_at="2026-11-30T06:12:30+00:00",
    statistics_path=f"{FOLDER}/statistics/{START}.json",
)
POLICY = TTLPolicy(
    spec=PartitionSpec.parse("origin=*/"), kind=PolicyKind.KEEP_BY_COUNT, value=KEPT_MONTHS, is_default=True
)


def expiry_entry(path: str) -> ExpiryEntry:
    gone = expires(path)
    month = int(path.rsplit("=", 1)[1])
    return ExpiryEntry(
        partition_path=path,
        decision=Decision.EXPIRE if gone else Decision.KEEP,
        reason=f"rank {13 - month} of 12 by month, {KEPT_MONTHS} are kept",
        policy=str(POLICY),
        last_modified_instant=START,
        total_bytes=sum(sizes_before(path)),
        data_file_count=4,
        log_file_count=0,
    )


def clustering_entry(path: str) -> ClusteringEntry:
    return ClusteringEntry(
        partition_path=path,
        decision=Decision.CLUSTER,
        reason="4 files below 700 KiB fit into 1",
        groups=(
            PlannedGroup(
                partition_path=path,
                inputs=tuple(
                    PlannedInput(file_id=f"{path}-{index}", base_file_name=f"{path}-{index}.parquet", base_bytes=size)
                    for index, size in enumerate(sizes_before(path))
                ),
                output_file_count=1,
            ),
        ),
    )


EXPIRY_PLAN = ExpiryPlan(basis=BASIS, policies=PolicySet(default=POLICY), entries=tuple(map(expiry_entry, paths())))
CLUSTERING_PLAN = ClusteringPlan(
    basis=BASIS,
    settings=ClusteringSettings(
        target_file_bytes=128 * 1024**2, small_file_bytes=SMALL_FILE_BYTES, sort_columns=("carrier", "dest")
    ),
    entries=tuple(clustering_entry(path) for path in paths() if not expires(path)),
)


def expire_report(*, outcome: Outcome = Outcome.DONE) -> StepReport:
    gone = tuple(entry.partition_path for entry in EXPIRY_PLAN.expired)
    return StepReport(
        step=Step.EXPIRE,
        outcome=outcome,
        message=f"{len(gone)} partitions dropped; the cleaner reclaims their bytes",
        base_path=BASE_PATH,
        base_instant=START,
        plan_path=f"{FOLDER}/plans/{START}-expiry.json",
        instants=(EXPIRED_AT,) if outcome is Outcome.DONE else (),
        partitions=gone,
        files_before=4 * len(gone),
        bytes_before=sum(entry.total_bytes for entry in EXPIRY_PLAN.expired),
        engine_seconds=21.4,
    )


def clustering_report(step: Step, *, seconds: float) -> StepReport:
    kept = tuple(entry.partition_path for entry in CLUSTERING_PLAN.chosen)
    scheduled = step is Step.SCHEDULE_CLUSTERING
    return StepReport(
        step=step,
        outcome=Outcome.DONE,
        message=f"{len(kept)} groups in {len(kept)} partitions " + ("scheduled" if scheduled else "rewritten"),
        base_path=BASE_PATH,
        base_instant=EXPIRED_AT,
        plan_path=f"{FOLDER}/plans/{EXPIRED_AT}-clustering.json",
        instants=(SCHEDULED_AT,),
        partitions=kept,
        files_before=4 * len(kept),
        files_after=0 if scheduled else len(kept),
        bytes_before=sum(entry.input_bytes for entry in CLUSTERING_PLAN.chosen),
        bytes_after=0 if scheduled else AFTER.total_bytes,
        engine_seconds=seconds,
    )


REPORTS = (
    expire_report(),
    clustering_report(Step.SCHEDULE_CLUSTERING, seconds=14.9),
    clustering_report(Step.EXECUTE_CLUSTERING, seconds=83.2),
)
