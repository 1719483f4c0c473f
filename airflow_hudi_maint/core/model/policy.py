"""TTL policies: what RFC-65 defines, and options of ours beside it, checked.

Source: RFC-65 (partition TTL management), sections "TTL policy definition" and "Storage for TTL policy". Options of
ours are keys of their own in RFC-65's object, written only where they are not the default.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.event_time import EVENT_TIME_EXAMPLE, EventTime
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.policy_words import PolicyClock, PolicyKind, parse_clock, parse_kind, parse_value
from airflow_hudi_maint.core.model.strict_json import load_strictly, shown

__all__ = [
    "DEFAULT_FIELDS_KEY",
    "DEFAULT_POLICY_KEY",
    "DEFAULT_VALUE_KEY",
    "EXPLICIT_POLICIES_KEY",
    "POLICY_EXAMPLE",
    "POLICY_KEYS",
    "PolicyClock",
    "PolicyKind",
    "PolicySet",
    "TTLPolicy",
    "parse_clock",
    "parse_kind",
    "parse_value",
]

DEFAULT_POLICY_KEY = "hoodie.partition.ttl.management.default.policy"
DEFAULT_FIELDS_KEY = "hoodie.partition.ttl.management.default.fields"
DEFAULT_VALUE_KEY = "hoodie.partition.ttl.management.default.policy.value"
EXPLICIT_POLICIES_KEY = "hoodie.partition.ttl.policies"
POLICY_KEYS = (DEFAULT_POLICY_KEY, DEFAULT_FIELDS_KEY, DEFAULT_VALUE_KEY, EXPLICIT_POLICIES_KEY)

POLICY_EXAMPLE = '{"partitionSpec": "user_id=1/", "policy": "KEEP_BY_COUNT", "policyValue": 10}'

_REQUIRED = ("partitionSpec", "policy", "policyValue")
_NEAR = 0.92
"""How alike a key has to be to count as misspelled; Hudi's own keys of this family are further off."""
_OPTIONS = ("clock", "eventTimePattern", "eventTimeZone", "expireNullPartitions", "allowEmptying")


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

    ``clock`` and ``event_time`` go with KEEP_BY_TIME. ``expires_null`` lets partitions with a null value expire, which
    counts as the smallest. ``may_empty`` lets the newest sub-partition of a group go as well.
    """

    spec: PartitionSpec
    kind: PolicyKind
    value: int
    is_default: bool = False
    source: str = "argument"
    clock: PolicyClock = PolicyClock.LAST_MODIFIED
    event_time: EventTime | None = None
    expires_null: bool = False
    may_empty: bool = False

    def __post_init__(self) -> None:
        if self.value < 1:
            msg = (
                f"{self.source}: policy {self.kind} on {self.spec} has the value {self.value}; expected at least 1 "
                f"({_UNITS[self.kind]}), for example 30"
            )
            raise InvalidPolicyError(msg)
        if self.clock is not PolicyClock.LAST_MODIFIED and self.kind is not PolicyKind.KEEP_BY_TIME:
            msg = (
                f"{self.source}: policy {self.kind} on {self.spec} has the clock '{self.clock}', but goes by no time; "
                "leave the clock out, or use KEEP_BY_TIME"
            )
            raise InvalidPolicyError(msg)
        if (self.event_time is None) is (self.clock is PolicyClock.EVENT_TIME):
            msg = (
                f"{self.source}: policy {self.kind} on {self.spec} has the clock '{self.clock}' and eventTimePattern "
                f"{self.event_time and self.event_time.pattern!r}; clock 'event_time' needs one, for example "
                f"{EVENT_TIME_EXAMPLE}, and no other clock has one"
            )
            raise InvalidPolicyError(msg)

    @property
    def unit(self) -> str:
        """What ``value`` counts."""
        return _UNITS[self.kind]

    @property
    def options(self) -> dict[str, str | bool]:
        """Our keys beside RFC-65's, those that are not the default."""
        found: dict[str, str | bool] = {}
        if self.clock is not PolicyClock.LAST_MODIFIED:
            found["clock"] = str(self.clock)
        if self.event_time is not None:
            found["eventTimePattern"] = self.event_time.pattern
            if self.event_time.zone != "UTC":
                found["eventTimeZone"] = self.event_time.zone
        if self.expires_null:
            found["expireNullPartitions"] = True
        if self.may_empty:
            found["allowEmptying"] = True
        return found

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError unless the policy can apply to a table partitioned by ``scheme``."""
        try:
            self.spec.check(scheme)
            if self.event_time is not None:
                self.event_time.check(scheme)
        except InvalidPolicyError as error:
            raise InvalidPolicyError(f"{self.source}: policy {self}: {error}") from None
        if self.kind is not PolicyKind.KEEP_BY_TIME and len(self.spec.levels) >= len(scheme.fields):
            if not scheme.fields:
                msg = f"{self.source}: policy {self} goes by partitions, and the table has none; drop the policy"
                raise InvalidPolicyError(msg)
            msg = (
                f"{self.source}: policy {self} counts the sub-partitions below {self.spec}, but the table is "
                f"partitioned by {list(scheme.fields)} and has none below it; shorten the spec, for example to "
                f"'{PartitionSpec(levels=self.spec.levels[:-1])}', or use KEEP_BY_TIME"
            )
            raise InvalidPolicyError(msg)

    def to_json(self) -> dict[str, str | int | bool]:
        """RFC-65's object, with those of our keys that are not the default."""
        rfc: dict[str, str | int | bool] = {
            "partitionSpec": str(self.spec),
            "policy": str(self.kind),
            "policyValue": self.value,
        }
        return rfc | self.options

    @classmethod
    def from_json(cls, value: object, *, source: str = "argument") -> TTLPolicy:
        """Read RFC-65's object, with or without our keys; a number may come as digits in a string.

        Raises InvalidPolicyError that shows the offending text and an example of a right one.
        """
        if not isinstance(value, Mapping):
            msg = f"{source}: {shown(value)} is no policy; write for example {POLICY_EXAMPLE}"
            raise InvalidPolicyError(msg)
        _check_keys(value, source=source)
        clock = parse_clock(value.get("clock", PolicyClock.LAST_MODIFIED), source=source)
        kind = parse_kind(value["policy"], source=source)
        number = parse_value(value["policyValue"], source=source)
        switches = {key: _switch(value, key=key, source=source) for key in ("expireNullPartitions", "allowEmptying")}
        try:
            spec = PartitionSpec.parse(value["partitionSpec"])
            event_time = _event_time(value)
        except InvalidPolicyError as error:
            raise InvalidPolicyError(f"{source}: {error}") from None
        return cls(
            spec=spec,
            kind=kind,
            value=number,
            source=source,
            clock=clock,
            event_time=event_time,
            expires_null=switches["expireNullPartitions"],
            may_empty=switches["allowEmptying"],
        )

    def __str__(self) -> str:
        how = "" if self.clock is PolicyClock.LAST_MODIFIED else f" by {self.clock}"
        return f"{self.kind} {self.value} on {self.spec}{how}"


def _check_keys(value: Mapping[object, object], *, source: str) -> None:
    known = (*_REQUIRED, *_OPTIONS)
    missing = [key for key in _REQUIRED if key not in value]
    unknown = sorted(str(key) for key in value if key not in known)
    if not missing and not unknown:
        return
    near = {key: difflib.get_close_matches(key, known, n=1) for key in unknown}
    hints = [f"{key!r}" + (f" (for {found[0]!r}?)" if found else "") for key, found in near.items()]
    problems = [f"lacks {', '.join(map(repr, missing))}"] * bool(missing)
    problems += [f"has the unknown {', '.join(hints)}"] * bool(unknown)
    msg = f"{source}: policy {shown(dict(value))} {' and '.join(problems)}; write for example {POLICY_EXAMPLE}"
    raise InvalidPolicyError(msg)


def _event_time(value: Mapping[str, object]) -> EventTime | None:
    pattern, zone = value.get("eventTimePattern"), value.get("eventTimeZone", "UTC")
    if pattern is None:
        if "eventTimeZone" in value:
            msg = f"eventTimeZone {shown(zone)} needs an eventTimePattern; write for example {EVENT_TIME_EXAMPLE}"
            raise InvalidPolicyError(msg)
        return None
    if not isinstance(pattern, str):
        msg = f"eventTimePattern {shown(pattern)} is no text; write for example {EVENT_TIME_EXAMPLE}"
        raise InvalidPolicyError(msg)
    if not isinstance(zone, str):
        raise InvalidPolicyError(f"eventTimeZone {shown(zone)} is no text; write for example 'Europe/Berlin'")
    return EventTime(pattern=pattern, zone=zone)


def _switch(value: Mapping[str, object], *, key: str, source: str) -> bool:
    found = value.get(key, False)
    if not isinstance(found, bool):
        msg = f"{source}: {key!r} is {shown(found)} in {shown(dict(value))}; write true or false, without quotes"
        raise InvalidPolicyError(msg)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySet:
    """The policies of a table: explicit ones over at most one default."""

    explicit: tuple[TTLPolicy, ...] = ()
    default: TTLPolicy | None = None

    def __post_init__(self) -> None:
        if self.default is not None and not self.default.is_default:
            object.__setattr__(self, "default", replace(self.default, is_default=True))
        seen: dict[PartitionSpec, TTLPolicy] = {}
        for policy in self.explicit:
            if policy.spec in seen:
                first = seen[policy.spec]
                msg = (
                    f"{policy.source}: two explicit policies have the partitionSpec {str(policy.spec)!r}: "
                    f"'{first}' ({first.source}) and '{policy}' ({policy.source}); keep one of them"
                )
                raise InvalidPolicyError(msg)
            seen[policy.spec] = policy

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

        An object of the array with ``"default": true`` is the default policy, for one that the keys of the default
        cannot say: options of ours, or a spec that names a value.

        Raises InvalidPolicyError that names the key: a broken policy never falls back to another one.
        """
        _check_spelling(properties)
        listed, default = _listed(properties), _default(properties)
        if listed.default and default:
            msg = (
                f"{EXPLICIT_POLICIES_KEY} marks '{listed.default}' as the default, but {DEFAULT_POLICY_KEY} has "
                f"'{default}'; keep one of them"
            )
            raise InvalidPolicyError(msg)
        return cls(explicit=listed.explicit, default=default or listed.default)

    def to_properties(self) -> dict[str, str]:
        """The keys of ``hoodie.properties`` that :meth:`from_properties` reads; an absent key has to be removed."""
        default = self.default
        listed: list[dict[str, str | int | bool]] = [policy.to_json() for policy in self.explicit]
        found: dict[str, str] = {}
        if default and (default.options or default.spec.literal_count):
            listed.append({**default.to_json(), "default": True})
        elif default:
            found = {DEFAULT_POLICY_KEY: str(default.kind), DEFAULT_VALUE_KEY: str(default.value)}
            if default.spec.levels:
                found[DEFAULT_FIELDS_KEY] = ",".join(name for name, _ in default.spec.levels)
        if listed:
            found[EXPLICIT_POLICIES_KEY] = json.dumps(listed, separators=(",", ":"))
        return found

    @classmethod
    def from_json(cls, values: Sequence[object], *, source: str = "argument") -> PolicySet:
        """Read a list of RFC-65 objects; an entry with ``"default": true`` is the default policy.

        An entry's own ``"source"`` goes before ``source``.
        """
        if not isinstance(values, list | tuple):
            msg = f"{source}: {shown(values)} is no list of policies; write for example [{POLICY_EXAMPLE}]"
            raise InvalidPolicyError(msg)
        explicit: list[TTLPolicy] = []
        defaults: list[TTLPolicy] = []
        for value in values:
            entry = dict(value) if isinstance(value, Mapping) else value
            origin = str(entry.pop("source", source)) if isinstance(entry, dict) else source
            is_default = isinstance(entry, dict) and _switch(entry, key="default", source=origin)
            if isinstance(entry, dict):
                entry.pop("default", None)
            (defaults if is_default else explicit).append(TTLPolicy.from_json(entry, source=origin))
        if len(defaults) > 1:
            named = ", ".join(f"'{policy}'" for policy in defaults)
            msg = f"{source}: {len(defaults)} policies are marked as the default: {named}; mark one"
            raise InvalidPolicyError(msg)
        return cls(explicit=tuple(explicit), default=defaults[0] if defaults else None)

    def to_json(self) -> list[dict[str, str | int | bool]]:
        """The list that :meth:`from_json` reads."""
        return [
            {**policy.to_json(), "source": policy.source, **({"default": True} if policy is self.default else {})}
            for policy in self.all()
        ]


def _check_spelling(properties: Mapping[str, str]) -> None:
    """Refuse a key that is one of ours misspelled: without it another policy would decide."""
    for key in properties:
        if key.startswith("hoodie.partition.ttl.") and key not in POLICY_KEYS:
            near = difflib.get_close_matches(key, POLICY_KEYS, n=1, cutoff=_NEAR)
            if near:
                msg = f"the unknown key {key}={shown(properties[key])} looks like {near[0]!r}; write that, or remove it"
                raise InvalidPolicyError(msg)


def _listed(properties: Mapping[str, str]) -> PolicySet:
    if EXPLICIT_POLICIES_KEY not in properties:
        return PolicySet()
    text = properties[EXPLICIT_POLICIES_KEY].strip()
    if not text:
        msg = f"{EXPLICIT_POLICIES_KEY} is blank; write for example [{POLICY_EXAMPLE}], or remove the key"
        raise InvalidPolicyError(msg)
    try:
        values = load_strictly(text)
    except ValueError as error:
        msg = f"{EXPLICIT_POLICIES_KEY} is no JSON ({error}): {shown(text)}; write for example [{POLICY_EXAMPLE}]"
        raise InvalidPolicyError(msg) from error
    if not isinstance(values, list):
        msg = f"{EXPLICIT_POLICIES_KEY} is no JSON array: {shown(text)}; write for example [{POLICY_EXAMPLE}]"
        raise InvalidPolicyError(msg)
    foreign = next((value for value in values if isinstance(value, dict) and "source" in value), None)
    if foreign is not None:
        msg = f"{EXPLICIT_POLICIES_KEY}: policy {shown(foreign)} has the unknown 'source'; leave it out"
        raise InvalidPolicyError(msg)
    return PolicySet.from_json(values, source=EXPLICIT_POLICIES_KEY)


def _default(properties: Mapping[str, str]) -> TTLPolicy | None:
    present = {key: properties[key].strip() for key in (DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY) if properties.get(key)}
    example = f"{DEFAULT_POLICY_KEY}=KEEP_BY_TIME and {DEFAULT_VALUE_KEY}=30"
    if not present:
        if DEFAULT_FIELDS_KEY in properties:
            msg = (
                f"{DEFAULT_FIELDS_KEY}={shown(properties[DEFAULT_FIELDS_KEY])} is set, but neither "
                f"{DEFAULT_POLICY_KEY} nor {DEFAULT_VALUE_KEY} is; set all or none, for example {example}"
            )
            raise InvalidPolicyError(msg)
        return None
    for key in (DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY):
        if key not in present:
            other = next(iter(present))
            msg = f"{key} is not set, but {other}={shown(present[other])} is; a policy needs both: {example}"
            raise InvalidPolicyError(msg)
    kind = parse_kind(present[DEFAULT_POLICY_KEY], source=DEFAULT_POLICY_KEY)
    value = parse_value(present[DEFAULT_VALUE_KEY], source=DEFAULT_VALUE_KEY)
    spec = _default_spec(properties.get(DEFAULT_FIELDS_KEY))
    return TTLPolicy(spec=spec, kind=kind, value=value, is_default=True, source=DEFAULT_POLICY_KEY)


def _default_spec(text: str | None) -> PartitionSpec:
    """Read the fields of the default policy: any value of each; without the key, the whole table.

    A blank key is none: it would make a policy for each value of a field one for all of them together.
    """
    names = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(names) or any("=" in name or "/" in name for name in names):
        msg = f"{DEFAULT_FIELDS_KEY}={text!r} is no list of field names; write for example user_id, or leave it out"
        raise InvalidPolicyError(msg)
    try:
        return PartitionSpec(levels=tuple((name, None) for name in names))
    except InvalidPolicyError as error:
        raise InvalidPolicyError(f"{DEFAULT_FIELDS_KEY}={text!r}: {error}") from None
