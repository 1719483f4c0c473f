"""TTL policies: what RFC-65 defines, checked.

Source: RFC-65 (partition TTL management), sections "TTL policy definition" and "Storage for TTL policy".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec

DEFAULT_POLICY_KEY = "hoodie.partition.ttl.management.default.policy"
DEFAULT_FIELDS_KEY = "hoodie.partition.ttl.management.default.fields"
DEFAULT_VALUE_KEY = "hoodie.partition.ttl.management.default.policy.value"
EXPLICIT_POLICIES_KEY = "hoodie.partition.ttl.policies"
POLICY_KEYS = (DEFAULT_POLICY_KEY, DEFAULT_FIELDS_KEY, DEFAULT_VALUE_KEY, EXPLICIT_POLICIES_KEY)

_MOST_DIGITS = 18
_SHOWN_CHARACTERS = 40
_EXAMPLE = '{"partitionSpec": "user_id=1/", "policy": "KEEP_BY_COUNT", "policyValue": 10}'


class PolicyKind(StrEnum):
    """What a policy keeps."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_COUNT = "KEEP_BY_COUNT"
    KEEP_BY_SIZE = "KEEP_BY_SIZE"


_UNITS = {
    PolicyKind.KEEP_BY_TIME: "days",
    PolicyKind.KEEP_BY_COUNT: "sub-partitions",
    PolicyKind.KEEP_BY_SIZE: "bytes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TTLPolicy:
    """One policy over the partitions of a spec.

    ``value`` counts days for KEEP_BY_TIME, sub-partitions for KEEP_BY_COUNT, bytes for KEEP_BY_SIZE; at least 1.
    ``source`` says where it was written, for people who ask why a partition went.
    """

    spec: PartitionSpec
    kind: PolicyKind
    value: int
    is_default: bool = False
    source: str = "argument"

    def __post_init__(self) -> None:
        if self.value < 1:
            msg = (
                f"policy {self.kind} on {self.spec} has the value {self.value}; expected at least 1 {_UNITS[self.kind]}"
            )
            raise InvalidPolicyError(msg)

    @property
    def unit(self) -> str:
        """What ``value`` counts."""
        return _UNITS[self.kind]

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError unless the policy can apply to a table partitioned by ``scheme``."""
        self.spec.check(scheme)
        if self.kind is not PolicyKind.KEEP_BY_TIME and len(self.spec.levels) >= len(scheme.fields):
            msg = (
                f"policy {self} counts the sub-partitions below {self.spec}, but the table is partitioned by "
                f"{list(scheme.fields)} and has none below it; shorten the spec or use KEEP_BY_TIME"
            )
            raise InvalidPolicyError(msg)

    def to_json(self) -> dict[str, str | int]:
        """RFC-65's object."""
        return {"partitionSpec": str(self.spec), "policy": str(self.kind), "policyValue": self.value}

    @classmethod
    def from_json(cls, value: object, *, source: str = "argument") -> TTLPolicy:
        """Read RFC-65's object; a number may come as digits in a string.

        Raises InvalidPolicyError that shows the offending text and an example of a right one.
        """
        if not isinstance(value, Mapping):
            msg = f"{source}: {value!r} is no policy; write for example {_EXAMPLE}"
            raise InvalidPolicyError(msg)
        unknown = sorted(map(str, set(value) - {"partitionSpec", "policy", "policyValue"}))
        missing = sorted({"partitionSpec", "policy", "policyValue"} - set(value))
        if unknown or missing:
            msg = (
                f"{source}: policy {dict(value)!r} lacks {missing} and has unknown {unknown}; "
                f"write for example {_EXAMPLE}"
            )
            raise InvalidPolicyError(msg)
        return cls(
            spec=PartitionSpec.parse(str(value["partitionSpec"])),
            kind=parse_kind(value["policy"], source=source),
            value=parse_value(value["policyValue"], source=source),
            source=source,
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.value} on {self.spec}"


def parse_kind(value: object, *, source: str) -> PolicyKind:
    """Read a policy's kind; raises InvalidPolicyError that lists the known ones."""
    try:
        return PolicyKind(str(value).strip().upper())
    except ValueError:
        msg = f"{source}: policy {value!r} is unknown; expected one of {', '.join(PolicyKind)}"
        raise InvalidPolicyError(msg) from None


def parse_value(value: object, *, source: str) -> int:
    """Read a policy's value, a whole number of up to 18 digits or its text; raises InvalidPolicyError otherwise."""
    # Python itself refuses to write or read a number of thousands of digits.
    is_huge = isinstance(value, int) and abs(value) >= 10**_MOST_DIGITS
    text = "" if is_huge else str(value).strip()
    digits = text.removeprefix("-")
    is_number = text.isascii() and digits.isdigit() and not isinstance(value, bool)
    if is_huge or (is_number and len(digits) > _MOST_DIGITS):
        shown = f"{text[:_SHOWN_CHARACTERS]}… " if text else ""
        msg = f"{source}: policyValue {shown}has more than {_MOST_DIGITS} digits; write for example 30"
        raise InvalidPolicyError(msg)
    if not is_number:
        msg = f"{source}: policyValue {value!r} is no whole number; write for example 30"
        raise InvalidPolicyError(msg)
    return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """The policies of a table: explicit ones over at most one default."""

    explicit: tuple[TTLPolicy, ...] = ()
    default: TTLPolicy | None = None

    def __post_init__(self) -> None:
        if self.default is not None and not self.default.is_default:
            object.__setattr__(self, "default", _as_default(self.default))
        specs = [policy.spec for policy in self.explicit]
        doubled = next((spec for spec in specs if specs.count(spec) > 1), None)
        if doubled is not None:
            msg = f"two explicit policies have the partitionSpec {str(doubled)!r}; keep one of them"
            raise InvalidPolicyError(msg)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can ever expire by these policies."""
        return not self.explicit and self.default is None

    def all(self) -> tuple[TTLPolicy, ...]:
        """Explicit policies, then the default one."""
        return (*self.explicit, self.default) if self.default else self.explicit

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError unless every policy fits a table partitioned by ``scheme``."""
        for policy in self.all():
            policy.check(scheme)

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> PolicySet:
        """Read RFC-65's keys of ``hoodie.properties``; absent keys give an empty set.

        Raises InvalidPolicyError that names the key: a broken policy never falls back to another one.
        """
        return cls(explicit=_explicit(properties), default=_default(properties))

    @classmethod
    def from_json(cls, values: Sequence[object], *, source: str = "argument") -> PolicySet:
        """Read a list of RFC-65 objects; an entry with ``"default": true`` is the default policy.

        An entry's own ``"source"`` goes before ``source``.
        """
        if isinstance(values, str | Mapping):
            msg = f"{source}: {values!r} is no list of policies; write for example [{_EXAMPLE}]"
            raise InvalidPolicyError(msg)
        explicit: list[TTLPolicy] = []
        defaults: list[TTLPolicy] = []
        for value in values:
            entry = dict(value) if isinstance(value, Mapping) else value
            marked: object = entry.pop("default", False) if isinstance(entry, dict) else False
            origin = str(entry.pop("source", source)) if isinstance(entry, dict) else source
            if not isinstance(marked, bool):
                msg = f"{origin}: 'default' is {marked!r} in {value!r}; write true or false"
                raise InvalidPolicyError(msg)
            policy = TTLPolicy.from_json(entry, source=origin)
            if marked:
                defaults.append(_as_default(policy))
            else:
                explicit.append(policy)
        if len(defaults) > 1:
            msg = f"{source}: {len(defaults)} policies are marked as the default; mark one"
            raise InvalidPolicyError(msg)
        return cls(explicit=tuple(explicit), default=defaults[0] if defaults else None)

    def to_json(self) -> list[dict[str, str | int | bool]]:
        """The list that :meth:`from_json` reads."""
        return [
            {**policy.to_json(), "source": policy.source, **({"default": True} if policy is self.default else {})}
            for policy in self.all()
        ]


def _as_default(policy: TTLPolicy) -> TTLPolicy:
    return TTLPolicy(spec=policy.spec, kind=policy.kind, value=policy.value, is_default=True, source=policy.source)


def _explicit(properties: Mapping[str, str]) -> tuple[TTLPolicy, ...]:
    text = properties.get(EXPLICIT_POLICIES_KEY, "").strip()
    if not text:
        return ()
    try:
        values = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= _MOST_DIGITS else digits)
    except ValueError as error:
        msg = f"{EXPLICIT_POLICIES_KEY} is no JSON ({error}): {text!r}; write for example [{_EXAMPLE}]"
        raise InvalidPolicyError(msg) from error
    if not isinstance(values, list):
        msg = f"{EXPLICIT_POLICIES_KEY} is no JSON array: {text!r}; write for example [{_EXAMPLE}]"
        raise InvalidPolicyError(msg)
    return tuple(TTLPolicy.from_json(value, source=EXPLICIT_POLICIES_KEY) for value in values)


def _default(properties: Mapping[str, str]) -> TTLPolicy | None:
    present = {key: properties[key].strip() for key in (DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY) if properties.get(key)}
    if not present:
        if properties.get(DEFAULT_FIELDS_KEY):
            needed = f"{DEFAULT_POLICY_KEY} and {DEFAULT_VALUE_KEY}"
            msg = f"{DEFAULT_FIELDS_KEY} is set, but {needed} are not; set all or none"
            raise InvalidPolicyError(msg)
        return None
    for key in (DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY):
        if key not in present:
            msg = f"{key} is not set, but {', '.join(present)} is; a policy needs both"
            raise InvalidPolicyError(msg)
    return TTLPolicy(
        spec=_default_spec(properties.get(DEFAULT_FIELDS_KEY, "").strip()),
        kind=parse_kind(present[DEFAULT_POLICY_KEY], source=DEFAULT_POLICY_KEY),
        value=parse_value(present[DEFAULT_VALUE_KEY], source=DEFAULT_VALUE_KEY),
        is_default=True,
        source=DEFAULT_POLICY_KEY,
    )


def _default_spec(text: str) -> PartitionSpec:
    """Read the fields of the default policy: any value of each; without fields, the whole table."""
    names = [part.strip() for part in text.split(",")] if text else []
    if not all(names):
        msg = f"{DEFAULT_FIELDS_KEY}={text!r} has a blank field; write for example user_id, or leave the key out"
        raise InvalidPolicyError(msg)
    return PartitionSpec(levels=tuple((name, None) for name in names))
