"""The chart of the last instants over time, in lanes by what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.units import counted, human_duration, human_seconds
from airflow_hudi_maint.core.reporting.inks import Ink, Paint
from airflow_hudi_maint.core.reporting.insight import PastInstant
from airflow_hudi_maint.core.reporting.svg import Canvas, Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

KIND_INKS: Mapping[str, Ink] = {
    "write": Ink.WRITTEN,
    "replace": Ink.WRITTEN,
    "drop": Ink.EXPIRED,
    "clustering": Ink.CLUSTERED,
    "compaction": Ink.LATER,
    "log compaction": Ink.LATER,
    "clean": Ink.CLEANED,
    "rollback": Ink.GONE,
    "restore": Ink.GONE,
    "savepoint": Ink.KEPT,
    "indexing": Ink.KEPT,
}
"""The colour of each kind of instant; in the order of lanes."""

_WIDTH, _LANE_HEIGHT = 980, 34
_LEFT, _RIGHT, _TOP, _BOTTOM = 112, 34, 8, 30
_FILLED = 0.52
_LEAST_SHARE = 0.0045  # of the axis, for instants too short to be seen
_MARGIN = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    """What is drawn: from the first moment to the last."""

    start: datetime
    end: datetime

    def place(self, moment: datetime) -> float:
        """Seconds from the start; what lies before it is cut off there."""
        return max((moment - self.start).total_seconds(), 0.0)

    @property
    def seconds(self) -> float:
        return max((self.end - self.start).total_seconds(), 1.0)


def history_chart(history: Sequence[PastInstant], *, now: datetime, zone: tzinfo) -> Chart | None:
    """The last instants; None without one that can be dated.

    Completed instants are bars from requested to completed, pending ones outlines that go on until ``now``. A pending
    one from before the first completed one begins at the left edge.
    """
    shown = [one for one in history if one.started is not None]
    if not shown:
        return None
    lanes = [kind for kind in KIND_INKS if any(one.kind == kind for one in shown)]
    lanes += sorted({one.kind for one in shown}.difference(lanes))
    canvas = Canvas(
        name="history",
        title="The last instants of the timeline",
        description=", ".join(counted(sum(one.kind == lane for one in shown), lane) for lane in lanes)
        + f"; {sum(one.is_pending for one in shown)} pending",
        width=_WIDTH,
        height=_TOP + _BOTTOM + _LANE_HEIGHT * len(lanes),
        tooltips={f"instant_{place}": _tooltip(one, now=now) for place, one in enumerate(shown)},
    )
    span = _span(shown, now=now)
    return Chart(
        canvas=canvas,
        sentence=_sentence(shown, now=now),
        draw=lambda figure, paint: _draw(
            figure, paint, shown=shown, lanes=lanes, span=span, zone=zone, height=canvas.height
        ),
    )


def _span(shown: Sequence[PastInstant], *, now: datetime) -> _Span:
    finished = [one for one in shown if not one.is_pending]
    starts = [one.started for one in finished or shown if one.started is not None]
    ends = [one.completed or one.started for one in finished]
    known = [end for end in ends if end is not None]
    if any(one.is_pending for one in shown):
        known.append(now)
    start, end = min(starts), max([*known, *starts])
    margin = max((end - start) * _MARGIN, timedelta(seconds=1))
    return _Span(start=start - margin, end=end + margin)


def _sentence(shown: Sequence[PastInstant], *, now: datetime) -> str:
    finished = [one for one in shown if not one.is_pending]
    pending = [one for one in shown if one.is_pending]
    longest = max(finished, key=lambda one: one.duration or timedelta(0), default=None)
    text = f"The last {counted(len(finished), 'completed instant')}"
    if longest and longest.duration:
        text += f"; the longest was a {longest.kind} of {human_seconds(longest.duration.total_seconds())}"
    if not pending:
        return f"{text}. Nothing is pending."
    oldest = human_duration(max((one.age(now=now) or timedelta(0)) for one in pending).total_seconds())
    many = f"{len(pending)} are pending, the oldest for {oldest}"
    return f"{text}. {f'1 is pending, for {oldest}' if len(pending) == 1 else many}."


def _tooltip(one: PastInstant, *, now: datetime) -> str:
    operation = f" ({one.operation.lower().replace('_', ' ')})" if one.operation else ""
    touched = "" if one.partitions is None else f", {counted(one.partitions, 'partition')}"
    text = f"{one.instant.requested_time}: {one.kind}{operation}{touched}"
    if one.is_pending:
        age = one.age(now=now) or timedelta(0)
        return f"{text}, {one.instant.state.name.lower()} for {human_duration(age.total_seconds())}"
    return text if one.duration is None else f"{text}, {human_seconds(one.duration.total_seconds())}"


def _draw(
    figure: FigureBase,
    paint: Paint,
    *,
    shown: Sequence[PastInstant],
    lanes: Sequence[str],
    span: _Span,
    zone: tzinfo,
    height: int,
) -> None:
    axes = figure.add_axes(
        (_LEFT / _WIDTH, _BOTTOM / height, 1 - (_LEFT + _RIGHT) / _WIDTH, 1 - (_TOP + _BOTTOM) / height)
    )
    for place, one in enumerate(shown):
        _draw_instant(axes, paint, one=one, lane=lanes.index(one.kind), span=span, gid=f"instant_{place}")
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_yticks(range(len(lanes)), list(lanes))
    axes.set_xlim(0, span.seconds)
    ticks = time_ticks(span.start, span.end, zone=zone)
    axes.set_xticks([span.place(moment) for moment, _ in ticks], [label for _, label in ticks])
    axes.grid(axis="x")
    for lane in range(1, len(lanes)):
        axes.axhline(lane - 0.5, color=paint(Ink.GRID), linewidth=0.6)
    axes.tick_params(length=0)


def _draw_instant(axes: Axes, paint: Paint, *, one: PastInstant, lane: int, span: _Span, gid: str) -> None:
    if one.started is None:
        return
    ink = paint(KIND_INKS.get(one.kind, Ink.KEPT))
    left = span.place(one.started)
    right = span.seconds if one.is_pending else span.place(one.completed or one.started)
    width = max(right - left, span.seconds * _LEAST_SHARE)
    look = {"color": "none", "edgecolor": ink, "linestyle": (0, (3, 2))} if one.is_pending else {"color": ink}
    bars = axes.barh(lane, width, left=left, height=_FILLED, linewidth=1.4 if one.is_pending else 0, **look)
    bars[0].set_gid(gid)


_STEPS = (
    *(timedelta(seconds=one) for one in (1, 5, 15, 30)),
    *(timedelta(minutes=one) for one in (1, 2, 5, 15, 30)),
    *(timedelta(hours=one) for one in (1, 3, 6, 12)),
    *(timedelta(days=one) for one in (1, 2, 7, 14, 30, 91, 182, 365, 730, 1825)),
)
_MOST_TICKS = 8
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # in any locale


def time_ticks(start: datetime, end: datetime, *, zone: tzinfo) -> list[tuple[datetime, str]]:
    """At most eight moments at round times of ``zone`` with their labels; the first of a day carries its date.

    >>> from datetime import UTC
    >>> start = datetime(2026, 11, 30, 21, 10, tzinfo=UTC)
    >>> [label for _, label in time_ticks(start, start + timedelta(hours=6), zone=UTC)]
    ['30 Nov 22:00', '23:00', '1 Dec 00:00', '01:00', '02:00', '03:00']
    """
    step = next((one for one in _STEPS if (end - start) / one < _MOST_TICKS), _STEPS[-1])
    local = start.astimezone(zone)
    moment = local.replace(hour=0, minute=0, second=0, microsecond=0)
    moment += max((local - moment) // step, 0) * step
    found: list[tuple[datetime, str]] = []
    day = None
    while moment <= end and len(found) <= _MOST_TICKS:
        if moment >= local:
            month = _MONTHS[moment.month - 1]
            date = f"{moment.day} {month}" if step < timedelta(days=91) else f"{month} {moment.year}"
            clock = "" if step >= timedelta(days=1) else f"{moment:%H:%M}"
            clock = f"{moment:%H:%M:%S}" if step < timedelta(minutes=1) else clock
            found.append((moment, " ".join(filter(None, [date if day != moment.date() else "", clock]))))
            day = moment.date()
        moment += step
    return found
