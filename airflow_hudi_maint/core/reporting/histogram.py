"""The histogram of file sizes before and after."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.statistics import TableStatistics, quantile
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_count
from airflow_hudi_maint.core.reporting.inks import Ink, Paint
from airflow_hudi_maint.core.reporting.svg import Canvas, Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

_WIDTH, _HEIGHT = 980, 270
_LEFT, _RIGHT, _BOTTOM = 72, 34, 44
_TOP, _TOP_WITH_LABEL = 12, 30
_MAX_BINS = 16
_STEPS = (0.125, 0.25, 0.5, 1, 2, 4)  # widths of a bin in powers of two
_MAX_LABELS = 9
_FILLED = 0.84  # share of a bin that its bars take
_INKS = {"before": Ink.BEFORE, "after": Ink.AFTER}
_LIMIT_REACH = 2  # the axis is drawn out to the small-file limit when that is at most a factor of 2**2 away


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Bins of equal width on a logarithmic scale: ``count`` bins of 2**``step`` from 2**``start`` bytes on."""

    start: float
    step: float
    count: int

    @classmethod
    def over(cls, sizes: Sequence[int], *, limit_bytes: int) -> Bins:
        """Choose bins for sizes (at least one) and, where it is near, the small-file limit."""
        logs = [_log(min(sizes)), _log(max(sizes))]
        limit = _log(limit_bytes)
        if logs[0] - _LIMIT_REACH <= limit <= logs[1] + _LIMIT_REACH:
            logs.append(limit)
        low, high = min(logs), max(logs)
        step = next((one for one in _STEPS if (high - low) / one <= _MAX_BINS - 2), _STEPS[-1])
        start = math.floor(low / step) * step
        return cls(start=start, step=step, count=math.floor((high - start) / step) + 1)

    @property
    def edges(self) -> tuple[float, ...]:
        """The logarithms of the edges, one more than there are bins."""
        return tuple(self.start + self.step * index for index in range(self.count + 1))

    def counts(self, sizes: Sequence[int]) -> list[int]:
        """How many of the sizes, ascending, fall into each bin; the lower edge belongs to a bin, the upper does not."""
        places = [bisect_left(sizes, edge, key=_log) for edge in self.edges]
        return [above - below for below, above in pairwise(places)]


def size_histogram(*, before: TableStatistics | None, after: TableStatistics) -> Chart | None:
    """The files by size; None when there are no files at all."""
    series = {"before": before.base_file_bytes if before else (), "after": after.base_file_bytes}
    sizes = [size for values in series.values() for size in values]
    if not sizes:
        return None
    limit = after.small_file_bytes
    bins = Bins.over(sizes, limit_bytes=limit)
    counts = {name: bins.counts(values) for name, values in series.items() if name == "after" or before}
    canvas = Canvas(
        name="sizes",
        title="Data files by size",
        description="; ".join(_described(name, values=series[name]) for name in counts)
        + f"; small means below {human_bytes(limit)}",
        width=_WIDTH,
        height=_HEIGHT,
        tooltips=_tooltips(counts, bins=bins),
    )
    return Chart(
        canvas=canvas,
        sentence=_sentence(before=before, after=after),
        draw=lambda figure, paint: _draw(figure, paint, bins=bins, counts=counts, limit_bytes=limit),
    )


def _sentence(*, before: TableStatistics | None, after: TableStatistics) -> str:
    sizes, limit = after.base_file_bytes, human_bytes(after.small_file_bytes)
    if not sizes:
        return "No data file is left."
    earlier = quantile(before.base_file_bytes, 0.5) if before else None
    compared = "" if earlier is None else f" ({human_bytes(earlier)} before)"
    share = f"{100 * after.small_file_count / len(sizes):.0f} %"
    small = {0: "none", len(sizes): "all"}.get(after.small_file_count, f"{share} of them")
    return (
        f"Half of the {counted(len(sizes), 'data file')} have at most {human_bytes(quantile(sizes, 0.5))}{compared}; "
        f"{small} are small, which means below {limit}."
    )


def _log(size: int) -> float:
    return math.log2(max(size, 1))


def _described(name: str, *, values: Sequence[int]) -> str:
    return f"{name}: {counted(len(values), 'file')}, median {human_bytes(quantile(values, 0.5))}"


def _tooltips(counts: dict[str, list[int]], *, bins: Bins) -> dict[str, str]:
    edges = [human_bytes(round(2**edge)) for edge in bins.edges]
    return {
        f"{name}_bin_{index}": f"{name}: {counted(count, 'file')} from {edges[index]} to {edges[index + 1]}"
        for name, values in counts.items()
        for index, count in enumerate(values)
        if count
    }


def _draw(figure: FigureBase, paint: Paint, *, bins: Bins, counts: dict[str, list[int]], limit_bytes: int) -> None:
    from matplotlib.ticker import MaxNLocator

    is_marked = bins.edges[0] <= _log(limit_bytes) <= bins.edges[-1]
    top = _TOP_WITH_LABEL if is_marked else _TOP
    axes = figure.add_axes(
        (_LEFT / _WIDTH, _BOTTOM / _HEIGHT, 1 - (_LEFT + _RIGHT) / _WIDTH, 1 - (top + _BOTTOM) / _HEIGHT)
    )
    for index in range(bins.count):
        _draw_bin(axes, paint, index=index, bins=bins, counts={name: values[index] for name, values in counts.items()})
    axes.set_xlim(bins.edges[0], bins.edges[-1])
    axes.set_ylim(0, max(count for values in counts.values() for count in values) * 1.12)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(lambda count, _: human_count(round(count)))
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.set_ylabel("files")
    shown = bins.edges[:: -(-len(bins.edges) // _MAX_LABELS)]
    axes.set_xticks(shown, [human_bytes(round(2**edge)) for edge in shown])
    axes.set_xlabel("size of a data file (logarithmic)")
    if is_marked:
        _mark_limit(axes, paint, bins=bins, limit_bytes=limit_bytes)


def _draw_bin(axes: Axes, paint: Paint, *, index: int, bins: Bins, counts: dict[str, int]) -> None:
    present = {name: count for name, count in counts.items() if count}
    for place, (name, count) in enumerate(present.items()):
        width = bins.step * _FILLED / len(present)
        left = bins.edges[index] + bins.step * (1 - _FILLED) / 2 + width * place
        bar = axes.bar(left, count, width=width, align="edge", color=paint(_INKS[name]))
        bar[0].set_gid(f"{name}_bin_{index}")
        place_of_text = (left + width / 2, count)
        axes.annotate(f"{count:,}", place_of_text, (0, 2), textcoords="offset points", ha="center", fontsize=10)


def _mark_limit(axes: Axes, paint: Paint, *, bins: Bins, limit_bytes: int) -> None:
    place = _log(limit_bytes)
    axes.axvline(place, color=paint(Ink.LIMIT), linewidth=1.2, linestyle=(0, (4, 3)))
    on_left = place > (bins.edges[0] + bins.edges[-1]) / 2
    axes.annotate(
        f"small below {human_bytes(limit_bytes)}",
        (place, 1),
        (-5 if on_left else 5, 5),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if on_left else "left",
        fontsize=10,
        color=paint(Ink.LIMIT),
    )
