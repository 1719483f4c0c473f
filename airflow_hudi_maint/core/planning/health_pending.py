"""Signals about what is pending: requested or inflight, and not completed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum

from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.health import HealthSignal, Unit
from airflow_hudi_maint.core.model.health_facts import HealthFacts
from airflow_hudi_maint.core.model.instant import Action, Instant
from airflow_hudi_maint.core.model.units import counted, human_duration
from airflow_hudi_maint.core.planning.health_signals import judged, seconds_since, untold
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds
from airflow_hudi_maint.core.planning.writer_settings import FAILED_WRITES_POLICY, key_for


class PendingKind(StrEnum):
    """What a pending instant is to do, in words that every table version shares."""

    WRITE = "write"
    REPLACE = "replace"
    CLUSTERING = "clustering"
    COMPACTION = "compaction"
    LOG_COMPACTION = "log_compaction"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"


_KINDS = {
    Action.COMMIT: PendingKind.WRITE,
    Action.DELTA_COMMIT: PendingKind.WRITE,
    Action.REPLACE_COMMIT: PendingKind.REPLACE,
    Action.CLUSTERING: PendingKind.CLUSTERING,
    Action.COMPACTION: PendingKind.COMPACTION,
    Action.LOG_COMPACTION: PendingKind.LOG_COMPACTION,
    Action.CLEAN: PendingKind.CLEAN,
    Action.ROLLBACK: PendingKind.ROLLBACK,
    Action.RESTORE: PendingKind.RESTORE,
    Action.SAVEPOINT: PendingKind.SAVEPOINT,
    Action.INDEXING: PendingKind.INDEXING,
}
_MERGE_ON_READ_ONLY = (PendingKind.COMPACTION, PendingKind.LOG_COMPACTION)
_DEAD_WRITE = (
    "look whether its writer still runs; if it died, the table's next write rolls it back, or with {policy}=LAZY the "
    "next clean does (CALL run_clean)"
)
_ADVICE = {
    PendingKind.WRITE: _DEAD_WRITE,
    PendingKind.REPLACE: _DEAD_WRITE,
    PendingKind.CLUSTERING: (
        "execute it (HudiExecuteClusteringOperator, or CALL run_clustering with op => 'execute'): until then its file "
        "groups take no updates, and archival and the metadata table's compaction wait"
    ),
    PendingKind.COMPACTION: (
        "execute it (HudiExecuteCompactionOperator, or CALL run_compaction with op => 'run'): until then log files "
        "pile up on its file groups"
    ),
    PendingKind.LOG_COMPACTION: (
        "let the table's writers execute it (hoodie.log.compaction.inline=true): until then archival waits"
    ),
    PendingKind.CLEAN: (
        "run the clean again (CALL run_clean): it finishes what is pending; if it fails again, its log says which file"
    ),
    PendingKind.ROLLBACK: "let the table's next write finish it, and read in that writer's log why it did not yet",
    PendingKind.RESTORE: "run the restore again with Hudi: nothing may be written to the table until it is complete",
    PendingKind.SAVEPOINT: "make the savepoint again (CALL create_savepoint), or delete it (CALL delete_savepoint)",
    PendingKind.INDEXING: "run Hudi's indexer again for it, or drop the index with Hudi: nothing else may be written",
}


def pending_kind(instant: Instant, *, plans: tuple[PendingPlan, ...]) -> PendingKind:
    """What a pending instant is to do. On table version 6 only ``plans`` tell a clustering from an overwrite."""
    clusterings = {plan.instant.requested_time for plan in plans if plan.kind is PlanKind.CLUSTERING}
    if instant.action is Action.REPLACE_COMMIT and instant.requested_time in clusterings:
        return PendingKind.CLUSTERING
    return _KINDS[instant.action]


def pending_signals(facts: HealthFacts, *, now: datetime, thresholds: HealthThresholds) -> Iterator[HealthSignal]:
    """For each kind, the age of the oldest pending instant; 0 where none is pending.

    Kinds that a copy-on-write table cannot have are left out of its health.
    """
    by_kind: dict[PendingKind, list[Instant]] = {kind: [] for kind in PendingKind}
    for instant in facts.timeline.pending:
        by_kind[pending_kind(instant, plans=facts.plans)].append(instant)
    for kind, instants in by_kind.items():
        if instants or facts.config.is_merge_on_read or kind not in _MERGE_ON_READ_ONLY:
            yield _signal(kind, instants=instants, facts=facts, now=now, thresholds=thresholds)


def _signal(
    kind: PendingKind, *, instants: list[Instant], facts: HealthFacts, now: datetime, thresholds: HealthThresholds
) -> HealthSignal:
    name = f"pending_{kind}_seconds"
    limits, noun = thresholds.of(name), f"pending {kind.replace('_', ' ')}"
    if not instants:
        return judged(name, value=0, unit=Unit.SECONDS, limits=limits, found=f"no {noun}", advice="")
    oldest = instants[0]
    age = seconds_since(oldest.requested_time, facts=facts, now=now)
    if age is None:
        return untold(
            name, unit=Unit.SECONDS, limits=limits, found=f"{oldest} is no date", advice=_advice(kind, facts=facts)
        )
    plans = {plan.instant.requested_time: plan for plan in facts.plans}
    waits = f"{oldest.requested_time} waits for {human_duration(max(age, 0))}"
    held = _held(plans.get(oldest.requested_time))
    is_doubtful = kind is PendingKind.REPLACE and "plans" in facts.unread
    doubt = f"; it may be a clustering, since plans could not be read: {facts.unread['plans']}" if is_doubtful else ""
    others = "" if len(instants) == 1 else f", and {counted(len(instants) - 1, 'younger one')}"
    return judged(
        name,
        value=max(age, 0),
        unit=Unit.SECONDS,
        limits=limits,
        found=f"the {'oldest ' if others else ''}{noun} {waits}{held}{others}{doubt}",
        advice=_advice(kind, facts=facts),
        details=tuple(f"{one}{_held(plans.get(one.requested_time))}" for one in instants),
    )


def _advice(kind: PendingKind, *, facts: HealthFacts) -> str:
    return _ADVICE[kind].format(policy=key_for(FAILED_WRITES_POLICY, table_version=facts.config.table_version))


def _held(plan: PendingPlan | None) -> str:
    if plan is None or not plan.inputs:
        return ""
    return f" and holds {counted(len(plan.inputs), 'file group')} of {counted(len(plan.partitions), 'partition')}"
