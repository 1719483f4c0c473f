"""What changes from one set of policies to another."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_hudi_maint.core.model.policy import PolicySet, TTLPolicy

_Place = tuple[str, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDiff:
    """Policies that come, go and change, by spec; ``changed`` has each as before and after. Sources do not count."""

    added: tuple[TTLPolicy, ...]
    removed: tuple[TTLPolicy, ...]
    changed: tuple[tuple[TTLPolicy, TTLPolicy], ...]
    unchanged: tuple[TTLPolicy, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.added or self.removed or self.changed)

    def lines(self) -> tuple[str, ...]:
        """The difference for people, in the order of the specs: ``+`` comes, ``-`` goes, ``~`` changes."""
        found = [(_place(one), f"+ {_text(one)}") for one in self.added]
        found += [(_place(one), f"- {_text(one)}") for one in self.removed]
        found += [(_place(after), f"~ {_text(before)} → {_text(after)}") for before, after in self.changed]
        return tuple(line for _, line in sorted(found))


def diff_policies(before: PolicySet, after: PolicySet) -> PolicyDiff:
    """Compare two sets, spec by spec; the default policy is compared with the default one, whatever its spec.

    >>> old = PolicySet.from_json([{"partitionSpec": "a=1/", "policy": "KEEP_BY_TIME", "policyValue": 30}])
    >>> new = PolicySet.from_json([
    ...     {"partitionSpec": "a=1/", "policy": "KEEP_BY_TIME", "policyValue": 7},
    ...     {"partitionSpec": "a=2/", "policy": "KEEP_BY_COUNT", "policyValue": 3},
    ... ])
    >>> diff_policies(old, new).lines()
    ('~ KEEP_BY_TIME 30 on a=1/ → KEEP_BY_TIME 7 on a=1/', '+ KEEP_BY_COUNT 3 on a=2/')
    """
    old, new = ({_key(policy): policy for policy in one.all()} for one in (before, after))
    both = [(old[key], new[key]) for key in new if key in old]
    return PolicyDiff(
        added=tuple(policy for key, policy in new.items() if key not in old),
        removed=tuple(policy for key, policy in old.items() if key not in new),
        changed=tuple((one, other) for one, other in both if one.to_json() != other.to_json()),
        unchanged=tuple(other for one, other in both if one.to_json() == other.to_json()),
    )


def _key(policy: TTLPolicy) -> _Place:
    return ("", True) if policy.is_default else (str(policy.spec), False)


def _place(policy: TTLPolicy) -> _Place:
    return (str(policy.spec), policy.is_default)


def _text(policy: TTLPolicy) -> str:
    options = {key: value for key, value in policy.options.items() if key != "clock"}
    extras = "".join(f", {key}={value}" for key, value in options.items())
    return f"{policy}{extras}{' (default)' if policy.is_default else ''}"
