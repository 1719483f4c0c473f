"""What happened, in one plain sentence."""

from __future__ import annotations

from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.reporting.facts import DONE, REWRITES, ReportFacts


def headline(facts: ReportFacts) -> str:
    """Say what was done, or would be, or why nothing was."""
    done = [phrase for one in facts.reports if (phrase := _phrase(one, facts=facts))]
    if done:
        return _sentence("; ".join(done))
    if any(one.outcome is Outcome.DRY_RUN for one in facts.reports):
        return f"Dry run, nothing was changed: {_intent(facts)}."
    if facts.reports:
        return "Nothing had to be done: no partition expired and none needed rewriting."
    return f"Statistics only, nothing was changed: {_intent(facts)}."


def state_of_table(facts: ReportFacts) -> str:
    """Say what the table holds now."""
    after = facts.after
    small = human_count(after.small_file_count) if after.small_file_count else "none"
    return (
        f"The table now holds {human_bytes(after.total_bytes)} in {counted(after.data_file_count, 'data file')} "
        f"and {counted(len(after.partitions), 'partition')}; {small} of the files "
        f"{'is' if after.small_file_count == 1 else 'are'} below {human_bytes(after.small_file_bytes)}."
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _phrase(report: StepReport, *, facts: ReportFacts) -> str | None:
    if report.outcome not in DONE:
        return None
    partitions = counted(len(report.partitions), "partition")
    plural = len(report.partitions) != 1
    if report.step is Step.EXPIRE:
        size = human_bytes(report.bytes_before - report.bytes_after)
        phrase = f"{partitions} with {size} {'were' if plural else 'was'} expired"
    elif report.step in REWRITES:
        files = counted(report.files_before, "file")
        phrase = f"{files} in {partitions} were rewritten as {human_count(report.files_after)}"
    elif any(one.step in REWRITES and one.outcome in DONE for one in facts.reports):
        return None  # scheduled and executed: the execution says it all
    else:
        phrase = f"clustering of {partitions} was scheduled"
    return f"{phrase} (by an earlier try)" if report.outcome is Outcome.ALREADY_DONE else phrase


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
