"""What happened, in one plain sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from airflow_hudi_maint.core.model.plan import Decision
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.reporting.facts import DONE, REWRITES, ReportFacts


def headline(facts: ReportFacts) -> str:
    """Say what failed, what was done, or would be, or why nothing was."""
    failed = failure_sentence(failed=facts.failed_steps, unrun=facts.unrun_steps)
    return f"{failed} {_what_was_done(facts)}".strip()


def failure_sentence(*, failed: Sequence[str], unrun: Sequence[str]) -> str:
    """Name the steps that failed; empty without any.

    >>> failure_sentence(failed=["expire_partitions"], unrun=["schedule_clustering", "execute_clustering"])
    'Failed: expire_partitions; 2 steps after it did not run.'
    """
    if not failed:
        return ""
    after = f"; {counted(len(unrun), 'step')} after {'it' if len(failed) == 1 else 'them'} did not run" if unrun else ""
    return f"Failed: {', '.join(failed)}{after}."


def _what_was_done(facts: ReportFacts) -> str:
    done = [phrase for one in facts.reports if (phrase := _phrase(one, facts=facts))]
    if done:
        return _sentence("; ".join(done))
    if any(one.outcome is Outcome.DRY_RUN for one in facts.reports):
        return f"Dry run, nothing was changed: {_intent(facts)}."
    if facts.failed_steps:
        return f"No other step changed the table: {_intent(facts)}."
    if facts.reports:
        return _why_nothing(blocked=_blocked(facts))
    if facts.expiry_plan is None and facts.clustering_plan is None:
        return "The state of the table; nothing was changed."
    return f"Statistics only, nothing was changed: {_intent(facts)}."


def _why_nothing(*, blocked: int) -> str:
    if not blocked:
        return "Nothing had to be done: no partition expired and none needed rewriting."
    waits = "waits" if blocked == 1 else "wait"
    return f"Nothing was changed: {counted(blocked, 'partition')} {waits} for a pending plan, and no other had to be."


def state_of_table(facts: ReportFacts) -> str:
    """Say what the table holds now."""
    after = facts.after
    small = human_count(after.small_file_count) if after.small_file_count else "none"
    return (
        f"The table now holds {human_bytes(after.total_bytes)} in {counted(after.data_file_count, 'data file')} "
        f"and {counted(len(after.partitions), 'partition')}; {small} of the files "
        f"{'is' if after.small_file_count == 1 else 'are'} below {human_bytes(after.small_file_bytes)}."
    )


def _blocked(facts: ReportFacts) -> int:
    """How many partitions a plan would have taken, had no pending plan held them."""
    expiring = {path for path, entry in facts.expiry_entries.items() if entry.decision is Decision.BLOCKED}
    rewritten = {path for path, entry in facts.clustering_entries.items() if entry.decision is Decision.BLOCKED}
    return len(expiring | rewritten)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _phrase(report: StepReport, *, facts: ReportFacts) -> str | None:
    if report.outcome not in DONE:
        return None
    executed = {one.step for one in facts.reports if one.outcome in DONE}
    if executed & _SAID_BY.get(report.step, frozenset()):
        return None  # scheduled and executed: the execution says it all
    phrase = _PHRASES[report.step](report)
    return f"{phrase} (by an earlier try)" if report.outcome is Outcome.ALREADY_DONE else phrase


def _expired(report: StepReport) -> str:
    size = human_bytes(report.bytes_before - report.bytes_after)
    return f"{_partitions(report)} with {size} {_was(len(report.partitions))} expired"


def _rewritten(report: StepReport) -> str:
    files = counted(report.files_before, "file")
    return f"{files} in {_partitions(report)} were rewritten as {human_count(report.files_after)}"


def _cleaned(report: StepReport) -> str:
    files, size = counted(report.files_before, "old file"), human_bytes(report.bytes_before)
    return f"{files} with {size} {_was(report.files_before)} deleted by Hudi's cleaner"


def _released(report: StepReport) -> str:
    return f"{counted(len(report.instants), 'savepoint')} {_was(len(report.instants))} released"


def _resolved(report: StepReport) -> str:
    return f"{counted(len(report.instants), 'pending plan')} {_was(len(report.instants))} resolved"


_SAID_BY: Mapping[Step, frozenset[Step]] = {
    Step.SCHEDULE_CLUSTERING: REWRITES,
    Step.SCHEDULE_COMPACTION: frozenset({Step.EXECUTE_COMPACTION}),
}
_PHRASES: Mapping[Step, Callable[[StepReport], str]] = {
    Step.EXPIRE: _expired,
    Step.SCHEDULE_CLUSTERING: lambda one: f"clustering of {_partitions(one)} was scheduled",
    Step.EXECUTE_CLUSTERING: _rewritten,
    Step.CLUSTER: _rewritten,
    Step.SCHEDULE_COMPACTION: lambda one: f"compaction of {_partitions(one)} was scheduled",
    Step.EXECUTE_COMPACTION: lambda one: f"log files of {_partitions(one)} were merged into base files",
    Step.RESOLVE_PENDING: _resolved,
    Step.COMPACT_SMALL_FILES: _rewritten,
    Step.CLEAN: _cleaned,
    Step.RESTORE: lambda one: f"{_partitions(one)} {_was(len(one.partitions))} restored",
    Step.RELEASE_SAVEPOINTS: _released,
}


def _partitions(report: StepReport) -> str:
    return counted(len(report.partitions), "partition")


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def _intent(facts: ReportFacts) -> str:
    intents = []
    if facts.expiry_plan and facts.expiry_plan.expired:
        expired = facts.expiry_plan.expired
        total = human_bytes(sum(entry.total_bytes for entry in expired))
        intents.append(f"{counted(len(expired), 'partition')} with {total} would expire")
    if facts.clustering_plan and facts.clustering_plan.chosen:
        chosen = facts.clustering_plan.chosen
        files = counted(sum(len(entry.file_ids) for entry in chosen), "file")
        outputs = human_count(sum(entry.output_file_count for entry in chosen))
        intents.append(f"{files} in {counted(len(chosen), 'partition')} would be rewritten as about {outputs}")
    if intents:
        return " and ".join(intents)
    return "the plans have nothing to do" if facts.expiry_plan or facts.clustering_plan else "there is no plan"
