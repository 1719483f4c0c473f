"""Hudi's own TTL settings (since 1.0), read as policies where a table has no others.

Source: Hudi's ``HoodieTTLConfig``. They are write settings: each writer has its own, and a table's properties hold them
only where somebody put them there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec
from airflow_hudi_maint.core.model.policy import PolicyClock, PolicyKind, PolicySet, TTLPolicy, parse_value
from airflow_hudi_maint.core.model.strict_json import shown

INLINE_KEY = "hoodie.partition.ttl.inline"
TYPE_KEY = "hoodie.partition.ttl.management.strategy.type"
CLASS_KEY = "hoodie.partition.ttl.strategy.class"
DAYS_KEY = "hoodie.partition.ttl.strategy.days.retain"
SELECTED_KEY = "hoodie.partition.ttl.strategy.partition.selected"
SHIPPED_KEYS = (INLINE_KEY, TYPE_KEY, CLASS_KEY, DAYS_KEY, SELECTED_KEY)

_CLOCKS = {
    "KEEP_BY_TIME": PolicyClock.LAST_MODIFIED,
    "KEEP_BY_CREATION_TIME": PolicyClock.CREATED,
    "org.apache.hudi.table.action.ttl.strategy.KeepByTimeStrategy": PolicyClock.LAST_MODIFIED,
    "org.apache.hudi.table.action.ttl.strategy.KeepByCreationTimeStrategy": PolicyClock.CREATED,
}
_OFF = -1


def shipped_policies(settings: Mapping[str, str], *, scheme: PartitionScheme, source: str) -> PolicySet:
    """Read Hudi's ``hoodie.partition.ttl.*`` settings; an empty set where none of them asks for anything.

    The days become the default policy of the whole table; where the settings select partitions by path, an explicit
    policy for each instead. Each policy's source names the key and ``source``.

    Raises InvalidPolicyError that names the key: for a value that is broken, for a strategy that is none of Hudi's two,
    and for a strategy that is switched on without days, by which Hudi silently drops nothing.
    """
    given = {key: settings[key].strip() for key in SHIPPED_KEYS if settings.get(key, "").strip()}
    days = parse_value(given.get(DAYS_KEY, _OFF), source=f"{source}: {DAYS_KEY}")
    if days == _OFF:
        asking = next((key for key in given if _asks(key, given[key])), None)
        if asking is None:
            return PolicySet()
        msg = (
            f"{source}: {asking}={given[asking]} asks for expiry, but {DAYS_KEY} is not set, so that nothing would "
            f"ever expire; set it, for example {DAYS_KEY}=30, or remove {asking}"
        )
        raise InvalidPolicyError(msg)
    clock = _clock(given, source=source)
    origin = f"{DAYS_KEY} ({source})"
    specs = tuple(_selected(given.get(SELECTED_KEY, ""), scheme=scheme, source=source))
    policies = [
        TTLPolicy(spec=spec, kind=PolicyKind.KEEP_BY_TIME, value=days, clock=clock, source=origin)
        for spec in specs or (PartitionSpec(levels=()),)
    ]
    return PolicySet(explicit=tuple(policies)) if specs else PolicySet(default=policies[0])


def _asks(key: str, value: str) -> bool:
    return key in (TYPE_KEY, CLASS_KEY, SELECTED_KEY) or (key == INLINE_KEY and value.lower() == "true")


def _clock(given: Mapping[str, str], *, source: str) -> PolicyClock:
    # As in Hudi, a class goes before a type.
    for key in (CLASS_KEY, TYPE_KEY):
        if key in given:
            clock = _CLOCKS.get(given[key])
            if clock is None:
                msg = (
                    f"{source}: {key}={given[key]} is none of Hudi's own strategies, so what it would drop is not "
                    f"known; write {TYPE_KEY}=KEEP_BY_TIME or KEEP_BY_CREATION_TIME, or give policies"
                )
                raise InvalidPolicyError(msg)
            return clock
    return PolicyClock.LAST_MODIFIED


def _selected(text: str, *, scheme: PartitionScheme, source: str) -> Iterator[PartitionSpec]:
    for path in dict.fromkeys(part.strip() for part in text.split(",") if part.strip()):
        values = scheme.values(path)
        if values is None or not all(values):
            example = "/".join(f"{name}=1" if scheme.hive_style else "1" for name in scheme.fields)
            msg = (
                f"{source}: {SELECTED_KEY} names {shown(path)}, which is no partition of a table partitioned by "
                f"{list(scheme.fields)}; write for example {example}"
            )
            raise InvalidPolicyError(msg)
        yield PartitionSpec(levels=tuple(zip(scheme.fields, values, strict=True)))
