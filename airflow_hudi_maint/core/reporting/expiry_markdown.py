"""An expiry plan as Markdown, for a person who is to approve it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from airflow_hudi_maint.core.model.plan import Decision, ExpiryEntry, ExpiryPlan
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count

DEFAULT_MAX_ROWS = 50

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!]|(?<=:)/(?=/))")
_MOST_CHARACTERS = 200


def expiry_markdown(plan: ExpiryPlan, *, problems: Sequence[str] = (), max_rows: int = DEFAULT_MAX_ROWS) -> str:
    """Write a plan: what it drops in figures, what a guard says against it, its warnings, policies and partitions.

    ``problems`` are the guards that it would trip. At most ``max_rows`` partitions of each kind are listed, the largest
    first, at most as many warnings and policies, and the rest counted; so the text is of bounded length however large
    the table. Names come as they are, with what Markdown would read as markup escaped.
    """
    parts = [
        f"### Expiry of {_plain(plan.basis.table_name)}",
        _summary(plan),
        *_bullets("Refused as it is", problems, max_rows=max_rows),
        *_bullets("Warnings", [one for one in plan.warnings if one not in problems], max_rows=max_rows),
        _policies(plan, max_rows=max_rows),
        *_table("Dropped", plan.expired, max_rows=max_rows),
        *_table("Blocked", plan.blocked, max_rows=max_rows),
        *_spared(plan, max_rows=max_rows),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(plan: ExpiryPlan) -> str:
    totals, expired = plan.totals, plan.totals[Decision.EXPIRE]
    whole = sum(one.bytes for one in totals.values())
    share = f" ({expired.bytes / whole:.1%})" if whole else ""
    records = "" if expired.records is None else f", {human_count(expired.records)} records"
    kept, blocked = totals[Decision.KEEP].partitions, totals[Decision.BLOCKED].partitions
    return (
        f"**{expired.partitions:,} of {counted(len(plan.entries), 'partition')}** of `{_code(plan.basis.base_path)}` "
        f"would be dropped: {human_bytes(expired.bytes)} of {human_bytes(whole)}{share}, "
        f"{counted(expired.files, 'file')}{records}. {kept:,} are kept, {blocked:,} are blocked. The plan was made at "
        f"{_plain(plan.basis.created_at)}, on instant `{_code(plan.basis.base_instant)}`."
    )


def _bullets(title: str, lines: Sequence[str], *, max_rows: int) -> Iterator[str]:
    if lines:
        rest = [f"… and {len(lines) - max_rows:,} more"] if len(lines) > max_rows else []
        yield f"**{title}**\n\n" + "\n".join([*(f"- {_plain(line)}" for line in lines[:max_rows]), *rest])


def _policies(plan: ExpiryPlan, *, max_rows: int) -> str:
    if plan.policies.is_empty:
        return "No policy: nothing can expire."
    every = plan.policies.all()
    # The default one, which comes last, is the one that most partitions go by.
    shown = every if len(every) <= max_rows else (*every[: max_rows - 1], every[-1])
    rows = [(_plain(f"{policy}{' (default)' if policy.is_default else ''}"), _plain(policy.source)) for policy in shown]
    rest = f"\n\n… and {len(every) - len(shown):,} more policies" if len(every) > len(shown) else ""
    return _grid(("policy", "from"), rows) + rest


def _table(title: str, entries: Sequence[ExpiryEntry], *, max_rows: int) -> Iterator[str]:
    if not entries:
        return
    shown = _largest(entries, max_rows=max_rows)
    rows = [
        (
            f"`{_code(entry.partition_path)}`",
            human_bytes(entry.total_bytes),
            human_count(entry.record_count),
            _plain(entry.policy or "–"),
            _plain(entry.reason),
        )
        for entry in shown
    ]
    yield f"**{title}**\n\n" + _grid(("partition", "bytes", "records", "policy", "reason"), rows)
    yield from _rest(entries, shown=len(shown))


def _spared(plan: ExpiryPlan, *, max_rows: int) -> Iterator[str]:
    entries = plan.spared
    if not entries:
        return
    shown = _largest(entries, max_rows=max_rows)
    rows = [
        (f"`{_code(one.partition_path)}`", human_bytes(one.total_bytes), _plain(one.why_not or "")) for one in shown
    ]
    yield "**Kept, although one might expect otherwise**\n\n" + _grid(("partition", "bytes", "why"), rows)
    yield from _rest(entries, shown=len(shown))


def _largest(entries: Sequence[ExpiryEntry], *, max_rows: int) -> list[ExpiryEntry]:
    return sorted(entries, key=lambda one: (-one.total_bytes, one.partition_path))[:max_rows]


def _rest(entries: Sequence[ExpiryEntry], *, shown: int) -> Iterator[str]:
    if len(entries) > shown:
        left = sum(one.total_bytes for one in _largest(entries, max_rows=len(entries))[shown:])
        yield f"… and {len(entries) - shown:,} more, {human_bytes(left)} together; the plan's file has them all."


def _grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", _one_line(text))


def _code(text: str) -> str:
    # Inside backticks nothing is escaped, but a pipe would end a cell and a backtick the code.
    return _one_line(text).replace("`", "'").replace("|", "¦")


def _one_line(text: str) -> str:
    line = text if text.isprintable() else "".join(map(_visible, " ".join(text.split())))
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"


def _visible(character: str) -> str:
    # A mark that turns the direction of writing, say, would let a name look like another one.
    return character if character.isprintable() else f"U+{ord(character):04X}"
