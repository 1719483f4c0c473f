"""The chart of bytes per partition, coloured by what became of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.reporting.facts import Fate, PartitionFate
from airflow_hudi_maint.core.reporting.inks import Ink, Paint
from airflow_hudi_maint.core.reporting.svg import Canvas, Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

MAX_BARS = 40

FATE_INKS: Mapping[Fate, Ink] = {
    Fate.EXPIRED: Ink.EXPIRED,
    Fate.TO_EXPIRE: Ink.EXPIRED,
    Fate.RESTORED: Ink.CLEANED,
    Fate.CLUSTERED: Ink.CLUSTERED,
    Fate.TO_CLUSTER: Ink.CLUSTERED,
    Fate.BLOCKED: Ink.BLOCKED,
    Fate.GONE: Ink.GONE,
    Fate.KEPT: Ink.KEPT,
}
"""The colour of each fate; what is only planned has the colour of what it will be."""

_PLANNED = frozenset({Fate.TO_EXPIRE, Fate.TO_CLUSTER})
_WIDTH = 980
_BAR_HEIGHT = 17
_RIGHT, _TOP, _BOTTOM = 24, 6, 30
_LETTER_WIDTH = 6.6
_MAX_LETTERS = 44
_TICKS = 5
_EMPTY = "(whole table)"


def largest_partitions(partitions: Sequence[PartitionFate], *, count: int = MAX_BARS) -> tuple[PartitionFate, ...]:
    """The partitions with most bytes, before or after; in their own order, which decides between equals."""
    places = sorted(range(len(partitions)), key=lambda place: -partitions[place].largest_bytes)[:count]
    return tuple(partitions[place] for place in sorted(places))


def partition_chart(partitions: Sequence[PartitionFate]) -> Chart | None:
    """The largest partitions; None without partitions.

    A pale bar is the bytes before, a solid one the bytes after: an expired partition has no solid bar.
    """
    shown = largest_partitions(partitions)
    if not shown:
        return None
    names = [shortened(one.partition_path or _EMPTY) for one in shown]
    canvas = Canvas(
        name="partitions",
        title="Bytes per partition",
        description=_described(shown, left_out=len(partitions) - len(shown)),
        width=_WIDTH,
        height=_TOP + _BOTTOM + _BAR_HEIGHT * len(shown),
        texts={f"@{index}@": name for index, name in enumerate(names)},
        tooltips={f"bar_{index}": tooltip(one) for index, one in enumerate(shown)},
    )
    left = 14 + _LETTER_WIDTH * max(map(len, names))
    return Chart(
        canvas=canvas,
        sentence=_sentence(partitions, shown=shown),
        draw=lambda figure, paint: _draw(figure, paint, shown=shown, left=left, height=canvas.height),
    )


def shortened(name: str) -> str:
    """Cut the middle out of a long name.

    >>> shortened("a" * 40 + "b" * 40) == "a" * 21 + "…" + "b" * 22
    True
    """
    if len(name) <= _MAX_LETTERS:
        return name
    half = _MAX_LETTERS // 2
    return f"{name[: half - 1]}…{name[-half:]}"


def tooltip(one: PartitionFate) -> str:
    """Say all of one partition."""
    now = f"{human_bytes(one.bytes_after)} in {counted(one.files_after, 'file')}"
    name = one.partition_path or _EMPTY
    if one.bytes_before is None or one.files_before is None:
        return f"{name}: {one.fate}, {now}"
    return f"{name}: {one.fate}, {human_bytes(one.bytes_before)} in {counted(one.files_before, 'file')} → {now}"


def _described(shown: Sequence[PartitionFate], *, left_out: int) -> str:
    fates = [(fate, sum(one.fate is fate for one in shown)) for fate in Fate]
    rest = f"; {counted(left_out, 'smaller partition')} left out" if left_out else ""
    return ", ".join(f"{count} {fate}" for fate, count in fates if count) + rest


def _sentence(partitions: Sequence[PartitionFate], *, shown: Sequence[PartitionFate]) -> str:
    largest = max(shown, key=lambda one: one.largest_bytes)
    name = largest.partition_path or _EMPTY
    left_out = len(partitions) - len(shown)
    which = f"The {len(shown)} largest partitions are drawn; {human_count(left_out)} smaller ones are left out"
    begin = which if left_out else "All partitions are drawn, in path order"
    return f"{begin}. The largest is {name} with {human_bytes(largest.largest_bytes)}."


def _draw(figure: FigureBase, paint: Paint, *, shown: Sequence[PartitionFate], left: float, height: int) -> None:
    axes = figure.add_axes(
        (left / _WIDTH, _BOTTOM / height, 1 - (left + _RIGHT) / _WIDTH, 1 - (_TOP + _BOTTOM) / height)
    )
    _draw_bars(axes, paint, shown=shown)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_yticks(range(len(shown)), [f"@{index}@" for index in range(len(shown))])
    largest = max(one.largest_bytes for one in shown)
    ticks = binary_ticks(largest)
    axes.set_xlim(0, max(largest, 1) * 1.01)
    axes.set_xticks(ticks, [human_bytes(tick) for tick in ticks])
    axes.grid(axis="x")
    axes.tick_params(length=0)


def _draw_bars(axes: Axes, paint: Paint, *, shown: Sequence[PartitionFate]) -> None:
    rows = range(len(shown))
    inks = [paint(FATE_INKS[one.fate]) for one in shown]
    planned = [one.fate in _PLANNED for one in shown]
    axes.barh(rows, [one.bytes_before or 0 for one in shown], height=0.72, color=inks, alpha=0.28)
    axes.barh(
        rows,
        [one.bytes_after for one in shown],
        height=[0.72 if plan or one.bytes_before is None else 0.4 for plan, one in zip(planned, shown, strict=True)],
        color=["none" if plan else ink for plan, ink in zip(planned, inks, strict=True)],
        edgecolor=[ink if plan else "none" for plan, ink in zip(planned, inks, strict=True)],
        linewidth=[1.2 if plan else 0 for plan in planned],
    )
    # Invisible bars over whole rows take the pointer.
    covers = axes.barh(rows, [max(one.largest_bytes, 1) for one in shown], height=1, color="#000000", alpha=0)
    for index, cover in enumerate(covers):
        cover.set_gid(f"bar_{index}")


def binary_ticks(largest: int) -> list[int]:
    """Ticks from 0 at a power of two, about five of them.

    >>> binary_ticks(5 * 1024)
    [0, 1024, 2048, 3072, 4096, 5120]
    """
    step = 2 ** max(math.ceil(math.log2(max(largest, 1) / _TICKS)), 0)
    return list(range(0, largest + 1, step))
