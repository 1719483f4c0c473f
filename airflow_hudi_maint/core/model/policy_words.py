"""The words and the number of a TTL policy: what it keeps, by which clock, and how much."""

from __future__ import annotations

from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.strict_json import MOST_DIGITS, shown

_SHOWN_DIGITS = 40


class PolicyKind(StrEnum):
    """What a policy keeps."""

    KEEP_BY_TIME = "KEEP_BY_TIME"
    KEEP_BY_COUNT = "KEEP_BY_COUNT"
    KEEP_BY_SIZE = "KEEP_BY_SIZE"


class PolicyClock(StrEnum):
    """What the age of a partition is counted from, under KEEP_BY_TIME."""

    LAST_MODIFIED = "last_modified"
    """The last instant that changed its data: RFC-65's own."""
    CREATED = "created"
    """The instant that created it: ``commitTime`` of its ``.hoodie_partition_metadata``."""
    EVENT_TIME = "event_time"
    """The end of the period that its values name."""


def parse_kind(value: object, *, source: str) -> PolicyKind:
    """Read a policy's kind; raises InvalidPolicyError that lists the known ones."""
    try:
        return PolicyKind(str(value).strip().upper())
    except ValueError:
        msg = f"{source}: policy {shown(value)} is unknown; write one of {', '.join(PolicyKind)}"
        raise InvalidPolicyError(msg) from None


def parse_clock(value: object, *, source: str) -> PolicyClock:
    """Read a policy's clock; raises InvalidPolicyError that lists the known ones."""
    try:
        return PolicyClock(str(value).strip().lower())
    except ValueError:
        msg = f"{source}: clock {shown(value)} is unknown; write one of {', '.join(PolicyClock)}"
        raise InvalidPolicyError(msg) from None


def parse_value(value: object, *, source: str) -> int:
    """Read a policy's value, a whole number of up to 18 digits or its text; raises InvalidPolicyError otherwise."""
    # Python itself refuses to write or read a number of thousands of digits.
    is_huge = isinstance(value, int) and abs(value) >= 10**MOST_DIGITS
    text = "" if is_huge else str(value).strip()
    digits = text.removeprefix("-")
    is_number = isinstance(value, int | str) and text.isascii() and digits.isdigit() and not isinstance(value, bool)
    if is_huge or (is_number and len(digits) > MOST_DIGITS):
        begin = f"{text[:_SHOWN_DIGITS]}… " if text else ""
        msg = f"{source}: policyValue {begin}has more than {MOST_DIGITS} digits; write for example 30"
        raise InvalidPolicyError(msg)
    if not is_number:
        msg = f"{source}: policyValue {shown(value)} is no whole number; write for example 30"
        raise InvalidPolicyError(msg)
    return int(text)
