"""The one table that the demo prints at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from airflow_hudi_maint.core.model.commit import Operation
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_change
from demo.evidence import Evidence

# Hudi's default of hoodie.clustering.plan.strategy.max.num.groups.
HUDI_DEFAULT_GROUPS = 30
Row = tuple[str, str, str, str]


def render_summary(evidence: Evidence, *, places: Mapping[str, str]) -> str:
    """Write the table; ``places`` says where the documents of the run lie. Ends without a line break."""
    figures = [("", "before", "after", "change"), *_figures(evidence)]
    widths = [max(len(row[column]) for row in figures) for column in range(4)]
    lines = [
        f"{name:<{widths[0]}}  {old:>{widths[1]}}  {new:>{widths[2]}}  {change:>{widths[3]}}".rstrip()
        for name, old, new, change in figures
    ]
    ruler = "─" * max(map(len, lines))
    notes = [*_rows_note(evidence), *_expiry_notes(evidence), *_clustering_notes(evidence), *_storage_note(evidence)]
    width = max(map(len, places))
    return "\n".join(
        [lines[0], ruler, *lines[1:], ruler, *notes, ruler, *(f"{name:<{width}}  {at}" for name, at in places.items())]
    )


def _figures(evidence: Evidence) -> Iterator[Row]:
    before, after = evidence.before, evidence.after
    counts = {
        "partitions": (len(before.partitions), len(after.partitions)),
        "file groups": (before.file_groups, after.file_groups),
        "data files": (len(before.file_bytes), len(after.file_bytes)),
        "rows": (before.rows, after.rows),
    }
    sizes = {
        "bytes": (before.total_bytes, after.total_bytes),
        "median file": (before.median_file_bytes, after.median_file_bytes),
        "p90 file": (before.p90_file_bytes, after.p90_file_bytes),
    }
    for name, (old, new) in counts.items():
        yield name, f"{old:,}", f"{new:,}", human_change(old, new)
    for name, (old_bytes, new_bytes) in sizes.items():
        yield name, human_bytes(old_bytes), human_bytes(new_bytes), human_change(old_bytes, new_bytes)


def _rows_note(evidence: Evidence) -> Iterator[str]:
    yield (
        f"rows expected: {evidence.before.rows:,} - {evidence.expired_rows:,} in expired partitions "
        f"= {evidence.expected_rows:,}; counted in the footers of the files: {evidence.after.rows:,}"
    )


def _expiry_notes(evidence: Evidence) -> Iterator[str]:
    gone = _of(evidence.expired, evidence.before.partitions)
    yield f"expired: {gone} {_instants(evidence, Operation.DELETE_PARTITION)}"
    for policy in sorted(set(evidence.policies.values())):
        paths = [path for path in evidence.expired if evidence.policies.get(path) == policy]
        rows = sum(evidence.before.partitions[path].rows for path in paths)
        size = sum(sum(evidence.before.partitions[path].file_bytes) for path in paths)
        yield f"  by {policy}: {', '.join(paths) or 'none'} ({rows:,} rows, {human_bytes(size)})"


def _clustering_notes(evidence: Evidence) -> Iterator[str]:
    clustered = sorted(evidence.clustered)
    yield f"clustered: {_of(clustered, evidence.after.partitions)} {_instants(evidence, Operation.CLUSTER)}"
    if len(clustered) > HUDI_DEFAULT_GROUPS:
        yield f"  Hudi by itself plans {HUDI_DEFAULT_GROUPS} groups at most and would have left out the rest silently"
    for path in sorted(set(evidence.after.partitions) - evidence.clustered):
        yield f"  left out: {path}: {evidence.left_out.get(path, 'nobody says why')}"


def _storage_note(evidence: Evidence) -> Iterator[str]:
    replaced = len(evidence.after.stored_bytes) - len(evidence.after.file_bytes)
    size = human_bytes(sum(evidence.after.stored_bytes) - evidence.after.total_bytes)
    yield f"not counted: {counted(replaced, 'replaced file')}, {size}, on storage until Hudi's cleaner removes them"


def _of(some: Sequence[str], every: Mapping[str, object]) -> str:
    return f"{len(some)} of {len(every)} partitions,"


def _instants(evidence: Evidence, operation: Operation) -> str:
    instants = ", ".join(one.instant for one in evidence.commits(operation))
    return f"replace commit {instants or 'missing'} ({operation})"
