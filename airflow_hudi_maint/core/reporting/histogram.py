"""The histogram of file sizes before and after."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.model.statistics import TableStatistics, quantile
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.reporting.svg import Canvas, Ink, inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 980, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 34, 34, 44
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
        """How many of the sizes fall into each bin; the lower edge belongs to a bin, the upper one does not."""
        found = Counter(math.floor((_log(size) - self.start) / self.step) for size in sizes)
        return [found[index] for index in range(self.count)]


def size_histogram(*, before: TableStatistics | None, after: TableStatistics) -> str | None:
    """Draw the files by size, as an ``<svg>`` element; None when there are no files at all."""
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
    return inline_svg(lambda figure: _draw(figure, bins=bins, counts=counts, limit_bytes=limit), canvas=canvas)


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


def _draw(figure: Figure, *, bins: Bins, counts: dict[str, list[int]], limit_bytes: int) -> None:
    from matplotlib.ticker import MaxNLocator

    axes = figure.add_axes(
        (_LEFT / _WIDTH, _BOTTOM / _HEIGHT, 1 - (_LEFT + _RIGHT) / _WIDTH, 1 - (_TOP + _BOTTOM) / _HEIGHT)
    )
    for index in range(bins.count):
        _draw_bin(axes, index=index, bins=bins, counts={name: values[index] for name, values in counts.items()})
    axes.set_xlim(bins.edges[0], bins.edges[-1])
    axes.set_ylim(0, max(count for values in counts.values() for count in values) * 1.12)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.grid(axis="y")
    axes.tick_params(length=0)
    axes.set_ylabel("files")
    shown = bins.edges[:: -(-len(bins.edges) // _MAX_LABELS)]
    axes.set_xticks(shown, [human_bytes(round(2**edge)) for edge in shown])
    axes.set_xlabel("size of a data file (logarithmic)")
    _mark_limit(axes, bins=bins, limit_bytes=limit_bytes)


def _draw_bin(axes: Axes, *, index: int, bins: Bins, counts: dict[str, int]) -> None:
    present = {name: count for name, count in counts.items() if count}
    for place, (name, count) in enumerate(present.items()):
        width = bins.step * _FILLED / len(present)
        left = bins.edges[index] + bins.step * (1 - _FILLED) / 2 + width * place
        bar = axes.bar(left, count, width=width, align="edge", color=_INKS[name])
        bar[0].set_gid(f"{name}_bin_{index}")
        place_of_text = (left + width / 2, count)
        axes.annotate(f"{count:,}", place_of_text, (0, 2), textcoords="offset points", ha="center", fontsize=10)


def _mark_limit(axes: Axes, *, bins: Bins, limit_bytes: int) -> None:
    place = _log(limit_bytes)
    if not bins.edges[0] <= place <= bins.edges[-1]:
        return
    axes.axvline(place, color=Ink.LIMIT, linewidth=1.2, linestyle=(0, (4, 3)))
    on_left = place > (bins.edges[0] + bins.edges[-1]) / 2
    axes.annotate(
        f"small below {human_bytes(limit_bytes)}",
        (place, 1),
        (-5 if on_left else 5, 5),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if on_left else "left",
        fontsize=10,
        color=Ink.LIMIT,
    )
