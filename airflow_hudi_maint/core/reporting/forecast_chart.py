"""The chart of partitions by age and bytes, coloured by when they will expire."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from airflow_hudi_maint.core.model.expiry_guards import ExpiryClock
from airflow_hudi_maint.core.model.policy import PolicyKind
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, ForecastEntry, Horizon
from airflow_hudi_maint.core.reporting.inks import Ink, Paint
from airflow_hudi_maint.core.reporting.svg import Canvas, Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

HORIZON_INKS: Mapping[Horizon, Ink] = {
    Horizon.NOW: Ink.EXPIRED,
    Horizon.BLOCKED: Ink.BLOCKED,
    Horizon.WEEK: Ink.WEEK,
    Horizon.MONTH: Ink.MONTH,
    Horizon.NEXT: Ink.GONE,
    Horizon.LATER: Ink.LATER,
    Horizon.KEPT: Ink.KEPT,
    Horizon.UNCOVERED: Ink.UNCOVERED,
}
"""The colour of each horizon."""

MAX_POINTS = 400
"""With more partitions, those that lie close together are drawn as one bubble."""

_WIDTH, _HEIGHT = 980, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 34, 22, 44
_COLUMNS, _ROWS = 64, 22
_DOT, _SMALLEST, _LARGEST = 34.0, 10.0, 150.0  # areas of dots and bubbles, in square points
_MAX_LIMITS = 3
_Y_STEPS = (0.25, 0.5, 1, 2, 4, 8)
_Y_TICKS = 6
_SAME_AGE = 0.05  # ages that differ by no more of the oldest are no axis
_UNITS = (
    ("minutes", timedelta(minutes=1), timedelta(hours=3)),
    ("hours", timedelta(hours=1), timedelta(days=4)),
    ("days", timedelta(days=1), timedelta.max),
)


class Bubble(NamedTuple):
    """Partitions of one horizon that are drawn together, at a place of the axis and a size in bytes."""

    horizon: Horizon
    place: float
    bytes: float
    partitions: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """What lies from left to right: ages in a unit, or where all are as old, partitions in path order."""

    label: str
    places: Sequence[float]
    last: float
    limits: Sequence[tuple[float, str]] = ()
    is_age: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scene:
    """What is drawn; ``low`` and ``high`` are the logarithms of the least and greatest bytes."""

    bubbles: Sequence[Bubble]
    axis: _Axis
    low: float
    high: float


def forecast_chart(forecast: ExpiryForecast) -> Chart | None:
    """All partitions whose age is known; None without any.

    Up to :data:`MAX_POINTS` partitions are a dot each. More are binned: dots in one small field of the chart with one
    colour become a bubble, so the drawing stays small however many partitions there are.
    """
    dated = [entry for entry in forecast.entries if entry.dated is not None]
    if not dated:
        return None
    scene = _scene(dated, forecast=forecast)
    totals = {one.horizon: one for one in forecast.totals}
    canvas = Canvas(
        name="forecast",
        title=f"Partitions by {'age and ' if scene.axis.is_age else ''}bytes, coloured by when they expire",
        description="; ".join(
            f"{one.horizon}: {counted(one.partitions, 'partition')}, {human_bytes(one.bytes)}"
            for one in totals.values()
        ),
        width=_WIDTH,
        height=_HEIGHT,
        tooltips={f"bubble_{place}": one.text for place, one in enumerate(scene.bubbles)},
    )
    return Chart(
        canvas=canvas,
        sentence=forecast_sentence(forecast),
        draw=lambda figure, paint: _draw(figure, paint, scene=scene),
    )


def forecast_sentence(forecast: ExpiryForecast) -> str:
    """Say what is to come, in a sentence or two."""
    if forecast.policies.is_empty:
        return "The table has no TTL policy, so no partition expires."
    totals = {one.horizon: one for one in forecast.totals}
    parts = [
        f"{counted(one.partitions, 'partition')} with {human_bytes(one.bytes)} {_verb(horizon, one.partitions)}"
        for horizon in (Horizon.NOW, Horizon.BLOCKED, Horizon.WEEK, Horizon.MONTH, Horizon.NEXT)
        if (one := totals.get(horizon))
    ]
    text = "; ".join(parts) or "No partition expires within 30 days"
    if all(policy.kind is not PolicyKind.KEEP_BY_TIME for policy in forecast.policies.all()):
        return f"{text}."
    clock = "; ages go by the table's newest data, so nothing expires while none comes"
    by_table = clock if forecast.clock is ExpiryClock.TABLE else ""
    return f"{text}. A date holds if nothing more is written to the partition{by_table}."


def _verb(horizon: Horizon, count: int) -> str:
    is_one = count == 1
    if horizon is Horizon.NOW:
        return "would expire now"
    if horizon is Horizon.BLOCKED:
        return f"would expire now, but {'is' if is_one else 'are'} blocked"
    if horizon is Horizon.NEXT:
        return f"{'is' if is_one else 'are'} next to go as the table grows"
    return f"{'falls' if is_one else 'fall'} due {horizon}"


def age_text(age: timedelta) -> str:
    """An age in the unit that suits it.

    >>> age_text(timedelta(minutes=90)), age_text(timedelta(hours=30)), age_text(timedelta(days=30))
    ('90 minutes', '30 hours', '30 days')
    """
    unit, length = _unit(age)
    amount = age / length
    number = f"{amount:.1f}" if 0 < amount < 10 and not float(amount).is_integer() else f"{amount:,.0f}"  # noqa: PLR2004
    return f"{number} {unit if number != '1' else unit.removesuffix('s')}"


def _unit(age: timedelta) -> tuple[str, timedelta]:
    return next((name, length) for name, length, below in _UNITS if age < below)


def _age_seconds(entry: ForecastEntry, *, now: datetime) -> float:
    # The clock of a writer may be a little ahead, and the period of an event time may not have ended.
    return max((now - (entry.dated or now)).total_seconds(), 0.0)


def _scene(dated: Sequence[ForecastEntry], *, forecast: ExpiryForecast) -> _Scene:
    ages = [_age_seconds(entry, now=forecast.made_at) for entry in dated]
    axis = _axis(ages, forecast=forecast)
    logs = [math.log2(max(entry.total_bytes, 1)) for entry in dated]
    low, high = math.floor(4 * min(logs) - 1) / 4, math.ceil(4 * max(logs) + 1) / 4
    if len(dated) <= MAX_POINTS:
        bubbles = [
            _point(entry, place=place, seconds=age) for entry, place, age in zip(dated, axis.places, ages, strict=True)
        ]
    else:
        bubbles = _binned(dated, ages=ages, logs=logs, axis=axis, reach=(low, high))
    bubbles.sort(key=lambda one: (-one.horizon.rank, -one.partitions, one.place, one.bytes, one.text))
    return _Scene(bubbles=bubbles, axis=axis, low=low, high=high)


def _axis(ages: Sequence[float], *, forecast: ExpiryForecast) -> _Axis:
    oldest = max(ages)
    unit, length = _unit(timedelta(seconds=oldest))
    if len(ages) > 1 and oldest - min(ages) <= oldest * _SAME_AGE:
        label = f"partitions in path order, all about {age_text(timedelta(seconds=oldest))} old"
        return _Axis(label=label, places=range(len(ages)), last=len(ages) - 1, is_age=False)
    oldest = max(oldest, length.total_seconds())
    return _Axis(
        label=f"age in {unit}",
        places=[age / length.total_seconds() for age in ages],
        last=oldest / length.total_seconds(),
        limits=[(seconds / length.total_seconds(), text) for seconds, text in _limits(forecast, oldest=oldest)],
    )


def _point(entry: ForecastEntry, *, place: float, seconds: float) -> Bubble:
    name = entry.partition_path or "(whole table)"
    due = "" if entry.due is None else f" ({entry.due:%Y-%m-%d})"
    age = age_text(timedelta(seconds=seconds))
    text = f"{name}: {human_bytes(entry.total_bytes)}, {age} old, {entry.horizon}{due}"
    return Bubble(entry.horizon, place, max(entry.total_bytes, 1), 1, text)


class _Field:
    """Partitions of one horizon in one small field of the chart."""

    __slots__ = ("bytes", "count", "seconds")

    def __init__(self) -> None:
        self.count, self.bytes, self.seconds = 0, 0, 0.0

    def add(self, entry: ForecastEntry, *, seconds: float) -> None:
        self.count += 1
        self.bytes += entry.total_bytes
        self.seconds += seconds


def _binned(
    dated: Sequence[ForecastEntry],
    *,
    ages: Sequence[float],
    logs: Sequence[float],
    axis: _Axis,
    reach: tuple[float, float],
) -> list[Bubble]:
    low, high = reach
    fields: dict[tuple[int, int, Horizon], _Field] = defaultdict(_Field)
    for entry, place, age, log in zip(dated, axis.places, ages, logs, strict=True):
        column = min(int(place / axis.last * _COLUMNS), _COLUMNS - 1)
        row = min(int((log - low) / (high - low) * _ROWS), _ROWS - 1)
        fields[column, row, entry.horizon].add(entry, seconds=age)
    bubbles = []
    for (column, row, horizon), field in fields.items():
        size_bytes = math.exp2(low + (row + 0.5) / _ROWS * (high - low))
        about = age_text(timedelta(seconds=field.seconds / field.count))
        count = counted(field.count, "partition")
        text = f"{horizon}: {count} about {about} old, {human_bytes(field.bytes)} together"
        bubbles.append(Bubble(horizon, (column + 0.5) / _COLUMNS * axis.last, size_bytes, field.count, text))
    return bubbles


def _limits(forecast: ExpiryForecast, *, oldest: float) -> list[tuple[float, str]]:
    """The ages in seconds at which policies by time let go, the three shortest that lie within the chart."""
    days = {policy.value for policy in forecast.policies.all() if policy.kind is PolicyKind.KEEP_BY_TIME}
    found = [(value * 86_400.0, f"kept {human_count(value)} d") for value in sorted(days) if value * 86_400 <= oldest]
    return found[:_MAX_LIMITS]


def _draw(figure: FigureBase, paint: Paint, *, scene: _Scene) -> None:
    axes = figure.add_axes(
        (_LEFT / _WIDTH, _BOTTOM / _HEIGHT, 1 - (_LEFT + _RIGHT) / _WIDTH, 1 - (_TOP + _BOTTOM) / _HEIGHT)
    )
    most = max(one.partitions for one in scene.bubbles)
    for place, one in enumerate(scene.bubbles):
        dots = axes.scatter(
            [one.place],
            [math.log2(one.bytes)],
            s=_DOT if most == 1 else _SMALLEST + (_LARGEST - _SMALLEST) * math.sqrt((one.partitions - 1) / most),
            color=paint(HORIZON_INKS[one.horizon]),
            alpha=0.8,
            linewidths=0,
            clip_on=False,
        )
        dots.set_gid(f"bubble_{place}")
    last = scene.axis.last
    axes.set_xlim(-last * 0.015, last * (1.03 if scene.axis.is_age else 1.015))
    if not scene.axis.is_age:
        axes.set_xticks([])
    axes.set_ylim(scene.low, scene.high)
    rows = _size_ticks(scene.low, scene.high)
    axes.set_yticks(rows, [human_bytes(round(2**row)) for row in rows])
    axes.set_xlabel(scene.axis.label)
    axes.grid()
    axes.tick_params(length=0)
    _mark_limits(axes, paint, scene=scene)


def _size_ticks(low: float, high: float) -> list[float]:
    """The logarithms of about six sizes, at powers of two where these are near enough."""
    step = next((one for one in _Y_STEPS if (high - low) / one <= _Y_TICKS), _Y_STEPS[-1])
    first = math.ceil(max(low, 0) / step)
    return [step * number for number in range(first, math.floor(high / step) + 1)]


def _mark_limits(axes: Axes, paint: Paint, *, scene: _Scene) -> None:
    for place, label in scene.axis.limits:
        axes.axvline(place, color=paint(Ink.LIMIT), linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            label,
            (place, 1),
            (0, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=10,
            color=paint(Ink.LIMIT),
        )
