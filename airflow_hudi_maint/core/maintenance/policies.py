"""Keep a table's TTL policies in its ``hoodie.properties``: add, drop, empty, show, and take over a policy file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from airflow_hudi_maint.core.errors import InvalidPolicyError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.expiry_planning import table_policies
from airflow_hudi_maint.core.model.policy import POLICY_KEYS, PolicySet, TTLPolicy
from airflow_hudi_maint.core.planning.policy_diff import PolicyDiff, diff_policies
from airflow_hudi_maint.core.planning.policy_match import PolicyMatcher, describe
from airflow_hudi_maint.core.storage.policy_files import load_policy_file
from airflow_hudi_maint.core.storage.properties import change_properties, load_properties

if TYPE_CHECKING:
    from airflow_hudi_maint.core.maintenance.workspace import Workspace
    from airflow_hudi_maint.core.model.partition import PartitionSpec
    from airflow_hudi_maint.core.model.policy_file import PolicyFile

_Change: TypeAlias = Callable[[PolicySet], PolicySet]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPolicies:
    """What a change of a table's policies did, or with ``is_dry_run`` would do.

    ``before`` and ``after`` are what ``hoodie.properties`` says; ``broken`` is what was wrong with it before, where
    that could not be understood and was replaced.
    """

    before: PolicySet
    after: PolicySet
    broken: str | None = None
    is_dry_run: bool = False

    @property
    def diff(self) -> PolicyDiff:
        """What came, went and changed, by spec."""
        return diff_policies(self.before, self.after)

    @property
    def is_changed(self) -> bool:
        """Whether anything is, or would be, written."""
        return self.broken is not None or not self.diff.is_empty

    def lines(self) -> tuple[str, ...]:
        """The difference for people: ``+`` comes, ``-`` goes, ``~`` changes, ``!`` was broken."""
        return (*([f"! {self.broken}"] if self.broken else []), *self.diff.lines())

    def __str__(self) -> str:
        diff, count = self.diff, len(self.after.all())
        kept = f"the table has {count} {'policy' if count == 1 else 'policies'}"
        if not self.is_changed:
            return f"Nothing changes: {kept}"
        would = "would be " if self.is_dry_run else ""
        counts = f"{len(diff.added)} added, {len(diff.changed)} changed, {len(diff.removed)} dropped"
        return f"TTL policies {would}written: {counts}; {kept}{' then' if self.is_dry_run else ''}"


def show_policies(workspace: Workspace) -> PolicySet:
    """The policies that decide about the table's partitions, each with its source; checked against the table.

    Those in ``hoodie.properties``, and where it has none Hudi's own TTL settings. Raises InvalidPolicyError that names
    the key of a broken one.
    """
    policies = table_policies(workspace, properties=load_properties(workspace.table.storage))
    _check(workspace, policies)
    return policies


def set_policies(workspace: Workspace, policies: PolicySet, *, is_dry_run: bool = False) -> ChangedPolicies:
    """Add policies to those of the table; one of the same spec is replaced, and so is the default by a default.

    A second run changes nothing. The policies that result are checked as a whole before anything is written. A change
    that somebody else makes meanwhile is kept, and the policies are added to that.

    Raises InvalidPolicyError for what does not fit the table, for two policies that could both win, and where the
    policies that the table has are broken; what :func:`change_properties` raises.
    """
    given = {policy.spec: policy for policy in policies.explicit}

    def added(before: PolicySet) -> PolicySet:
        known = {policy.spec for policy in before.explicit}
        kept = [given.get(policy.spec, policy) for policy in before.explicit]
        new = [policy for policy in policies.explicit if policy.spec not in known]
        return PolicySet(explicit=(*kept, *new), default=policies.default or before.default)

    return _changed(workspace, change=added, is_dry_run=is_dry_run)


def set_policy(workspace: Workspace, policy: TTLPolicy, *, is_dry_run: bool = False) -> ChangedPolicies:
    """Add one policy, the default one if it is marked so; see :func:`set_policies`."""
    given = PolicySet(default=policy) if policy.is_default else PolicySet(explicit=(policy,))
    return set_policies(workspace, given, is_dry_run=is_dry_run)


def drop_policy(
    workspace: Workspace, *, spec: PartitionSpec | None = None, default: bool = False, is_dry_run: bool = False
) -> ChangedPolicies:
    """Drop the explicit policy on ``spec``, or the ``default`` one, or both; one that is not there is none to drop.

    Raises InvalidPolicyError where the policies that the table has are broken; what :func:`change_properties` raises.
    """

    def without(before: PolicySet) -> PolicySet:
        explicit = tuple(policy for policy in before.explicit if policy.spec != spec)
        return PolicySet(explicit=explicit, default=None if default else before.default)

    return _changed(workspace, change=without, is_dry_run=is_dry_run)


def empty_policies(workspace: Workspace, *, is_dry_run: bool = False) -> ChangedPolicies:
    """Drop every policy of the table, also those that are broken; what :func:`change_properties` raises."""
    return _changed(workspace, change=lambda _: PolicySet(), is_dry_run=is_dry_run, replaces_all=True)


def apply_policy_file(
    workspace: Workspace, file: PolicyFile, *, is_dry_run: bool = False, shown: ChangedPolicies | None = None
) -> ChangedPolicies:
    """Make the file's policies those of the table; what else the table has goes, also where it is broken.

    Guards, protected specs and holds of the file are checked, but not stored in the table: plans take them from the
    file. ``shown`` is the dry run that somebody agreed to.

    Raises InvalidPolicyError and InvalidSettingError for what does not fit the table, PlanOutdatedError where the
    table's policies are not those of ``shown`` any more, and what :func:`change_properties` raises.
    """
    file.check(workspace.table.config.partitions)

    def replaced(before: PolicySet) -> PolicySet:
        if shown is not None and diff_policies(shown.before, before).lines():
            raise PlanOutdatedError(
                f"The policies of table {workspace.table.base_path} changed since the difference to {file.name} was "
                f"shown ({'; '.join(diff_policies(shown.before, before).lines())}); look at it again"
            )
        return file.policies

    return _changed(workspace, change=replaced, is_dry_run=is_dry_run, replaces_all=True)


def read_policy_file(workspace: Workspace, path: str) -> PolicyFile:
    """Read a policy file at a path or URL, and check it against the table.

    The storage options of the table go along where the file lies on the same kind of storage.

    Raises DocumentNotFoundError, InvalidPolicyError, InvalidSettingError and StorageError.
    """
    is_same = _scheme(path) == _scheme(workspace.table.base_path)
    file = load_policy_file(path, storage_options=workspace.storage_options if is_same else None)
    file.check(workspace.table.config.partitions)
    PolicyMatcher.of(file.policies)
    return file


def _changed(workspace: Workspace, *, change: _Change, is_dry_run: bool, replaces_all: bool = False) -> ChangedPolicies:
    storage = workspace.table.storage
    found: list[tuple[PolicySet, str | None]] = []

    def wanted(properties: Mapping[str, str]) -> dict[str, str | None]:
        before, broken = _present(properties, may_be_broken=replaces_all)
        found.append((before, broken))
        after = change(before)
        _check(workspace, after)
        if broken is None and diff_policies(before, after).is_empty:
            return {}  # somebody's own spelling stays
        return {**dict.fromkeys(POLICY_KEYS), **after.to_properties()}

    if is_dry_run:
        current = load_properties(storage)
        asked = {**current, **wanted(current)}
        properties = {key: value for key, value in asked.items() if value is not None}
    else:
        properties = change_properties(storage, change=wanted)
    before, broken = found[-1]
    changed = ChangedPolicies(
        before=before,
        after=PolicySet.from_properties(properties),
        broken=broken,
        is_dry_run=is_dry_run,
    )
    for line in (*changed.lines(), str(changed), *_warnings(workspace, changed, properties=properties)):
        workspace.log(line)
    return changed


def _present(properties: Mapping[str, str], *, may_be_broken: bool) -> tuple[PolicySet, str | None]:
    try:
        return PolicySet.from_properties(properties), None
    except InvalidPolicyError as error:
        if may_be_broken:
            return PolicySet(), str(error)
        msg = f"The policies that the table has are broken, so nothing is added or dropped: {error}. Empty them first"
        raise InvalidPolicyError(msg) from error


def _check(workspace: Workspace, policies: PolicySet) -> None:
    scheme = workspace.table.config.partitions
    if not scheme.fields and not policies.is_empty:
        named = ", ".join(f"'{policy}'" for policy in policies.all())
        msg = f"Table {workspace.table.base_path} is not partitioned, so no TTL policy can apply to it: {named}"
        raise InvalidPolicyError(msg)
    policies.check(scheme)
    PolicyMatcher.of(policies)  # two that could both win


def _warnings(workspace: Workspace, changed: ChangedPolicies, *, properties: Mapping[str, str]) -> Iterator[str]:
    """Say when Hudi's own TTL settings, which count where a table has no policy, begin or cease to decide."""
    if changed.before.is_empty == changed.after.is_empty and changed.broken is None:
        return
    without_ours = {key: value for key, value in properties.items() if key not in POLICY_KEYS}
    try:
        shipped = table_policies(workspace, properties=without_ours)
    except InvalidPolicyError as error:
        yield f"Warning: Hudi's own TTL settings are broken, and stop expiry where the table has no policy: {error}"
        return
    if not shipped.is_empty:
        named = ", ".join(f"{describe(policy)} from {policy.source}" for policy in shipped.all())
        verb = "decide now that no policy is left" if changed.after.is_empty else "do not decide any more"
        yield f"Warning: Hudi's own TTL settings {verb}: {named}"


def _scheme(path: str) -> str:
    return path.partition("://")[0] if "://" in path else "file"
