"""What happened between two snapshots, by the timeline's word, and whether it is what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.model.commit import CommitMetadata, Operation
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.plan import ClusteringPlan, Decision, ExpiryPlan
from airflow_hudi_maint.core.storage.documents import DocumentStore
from airflow_hudi_maint.core.storage.table import HudiTable
from demo.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaceCommit:
    """A completed replace commit: its instant, and the partitions whose file groups it replaced."""

    instant: str
    operation: str | None
    partitions: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that the demo's verdict rests on.

    ``policies`` gives the policy that expired each partition and ``left_out`` the reason why a partition was not
    clustered, both as the plans say. ``pending`` are instants that are not completed.
    """

    before: Snapshot
    after: Snapshot
    replace_commits: tuple[ReplaceCommit, ...]
    pending: tuple[str, ...]
    policies: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def expired(self) -> tuple[str, ...]:
        """Partitions that had data and have none."""
        return tuple(path for path in self.before.partitions if path not in self.after.partitions)

    @property
    def expired_rows(self) -> int:
        """Rows that the expired partitions held."""
        return sum(self.before.partitions[path].rows for path in self.expired)

    @property
    def expected_rows(self) -> int:
        """Rows that must be left: those of the other partitions."""
        return self.before.rows - self.expired_rows

    @property
    def clustered(self) -> frozenset[str]:
        """Partitions that a completed clustering rewrote."""
        return self.replaced_by(Operation.CLUSTER)

    def commits(self, operation: Operation) -> tuple[ReplaceCommit, ...]:
        """The replace commits of one operation, oldest first."""
        return tuple(one for one in self.replace_commits if one.operation == operation)

    def replaced_by(self, operation: Operation) -> frozenset[str]:
        """The partitions whose file groups an operation replaced."""
        return frozenset(path for one in self.commits(operation) for path in one.partitions)


def collect_evidence(table: HudiTable, *, documents: DocumentStore, before: Snapshot, after: Snapshot) -> Evidence:
    """Read the timeline and the plans of the run that lies between the snapshots."""
    timeline = table.timeline()
    new = [
        one
        for one in timeline.completed
        if one.action is Action.REPLACE_COMMIT and one.requested_time > before.as_of_instant
    ]
    commits = zip(new, table.commit_metadata_of(new), strict=True)
    return Evidence(
        before=before,
        after=after,
        replace_commits=tuple(_replace_commit(one.requested_time, metadata) for one, metadata in commits),
        pending=tuple(str(one) for one in timeline.pending),
        policies=_policies(_newest_expiry_plan(documents)),
        left_out=_left_out(_newest_clustering_plan(documents)),
    )


def find_problems(evidence: Evidence) -> tuple[str, ...]:
    """Say what contradicts the demo's claims; nothing when all of them hold.

    The claims: the timeline confirms each expiry and it is what the plan said; every other partition was clustered or
    is named with a reason; rows differ by those of the expired partitions, and in no other partition at all.
    """
    return tuple(_expiry_problems(evidence)) + tuple(_clustering_problems(evidence)) + tuple(_row_problems(evidence))


def _expiry_problems(evidence: Evidence) -> Iterator[str]:
    expired = frozenset(evidence.expired)
    confirmed = evidence.replaced_by(Operation.DELETE_PARTITION)
    if not expired:
        yield "no partition expired"
    if expired != confirmed:
        yield f"the timeline confirms the expiry of {sorted(confirmed)}, but gone are {sorted(expired)}"
    if expired != frozenset(evidence.policies):
        yield f"the plan lets {sorted(evidence.policies)} expire, but gone are {sorted(expired)}"


def _clustering_problems(evidence: Evidence) -> Iterator[str]:
    if not evidence.commits(Operation.CLUSTER):
        yield "the timeline shows no completed clustering"
    silent = sorted(set(evidence.after.partitions) - evidence.clustered - set(evidence.left_out))
    if silent:
        yield f"neither clustered nor named with a reason: {', '.join(silent)}"
    if evidence.after.file_groups >= evidence.before.file_groups - len(evidence.expired):
        yield f"clustering left {evidence.after.file_groups} of {evidence.before.file_groups} file groups"
    if evidence.pending:
        yield f"left pending on the timeline: {', '.join(evidence.pending)}"


def _row_problems(evidence: Evidence) -> Iterator[str]:
    if evidence.after.rows != evidence.expected_rows:
        yield f"{evidence.expected_rows:,} rows should be left, and {evidence.after.rows:,} are"
    for path, now in evidence.after.partitions.items():
        then = evidence.before.partitions.get(path)
        if then is None or then.rows != now.rows:
            yield f"{path} had {then.rows if then else 0:,} rows and has {now.rows:,}"


def _replace_commit(instant: str, metadata: CommitMetadata) -> ReplaceCommit:
    return ReplaceCommit(instant=instant, operation=metadata.operation, partitions=frozenset(metadata.replaced))


def _policies(plan: ExpiryPlan | None) -> dict[str, str]:
    return {one.partition_path: one.policy or "no policy" for one in plan.expired} if plan else {}


def _left_out(plan: ClusteringPlan | None) -> dict[str, str]:
    entries = plan.entries if plan else ()
    return {one.partition_path: one.reason for one in entries if one.decision is not Decision.CLUSTER}


def _newest_expiry_plan(documents: DocumentStore) -> ExpiryPlan | None:
    path = _newest(documents, kind="expiry")
    return ExpiryPlan.from_json(documents.read(path), name=path) if path else None


def _newest_clustering_plan(documents: DocumentStore) -> ClusteringPlan | None:
    path = _newest(documents, kind="clustering")
    return ClusteringPlan.from_json(documents.read(path), name=path) if path else None


def _newest(documents: DocumentStore, *, kind: str) -> str | None:
    """Return the path of the newest plan of a kind: names begin with an instant, and the kind comes next."""
    names = [name for name in documents.names("plans") if name.partition("-")[2].startswith(kind)]
    return documents.path("plans", name=names[-1]) if names else None
