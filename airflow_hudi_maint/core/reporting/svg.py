"""Charts drawn by matplotlib as inline SVG that follows the page's colours and fonts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_hudi_maint.core.reporting.inks import Ink, Paint, by_role

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

POINTS_PER_INCH = 72


Draw: TypeAlias = "Callable[[FigureBase, Paint], None]"
"""Fills a figure, or a part of one, with one chart in the colours that it is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """What a chart is called and how large it is; ``name`` is unique within its page.

    ``texts`` maps a placeholder that is drawn to the text that stands there in the end, so that fonts without its
    letters, and dollar signs, do no harm. ``tooltips`` are by the group id (``gid``) of a drawn element.
    """

    name: str
    title: str
    description: str
    width: int
    height: int
    texts: Mapping[str, str] = field(default_factory=dict)
    tooltips: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: what it is called, how it is drawn, and one sentence that says what it shows."""

    canvas: Canvas
    sentence: str
    draw: Draw

    def svg(self) -> str:
        """The chart as an ``<svg>`` element."""
        return inline_svg(self.draw, canvas=self.canvas)


def inline_svg(draw: Draw, *, canvas: Canvas) -> str:
    """Let ``draw`` fill a figure and return it as an ``<svg>`` element; the same input gives the same text."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()  # a user's own style must not reach the report
        mpl.rcParams.update({**style(by_role), "svg.fonttype": "none", "svg.hashsalt": canvas.name})
        figure = Figure(figsize=(canvas.width / POINTS_PER_INCH, canvas.height / POINTS_PER_INCH), facecolor="none")
        draw(figure, by_role)
        out = StringIO()
        figure.savefig(out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    return _adapted(out.getvalue(), canvas=canvas)


def style(paint: Paint) -> dict[Any, Any]:
    """How charts look, as matplotlib's settings."""
    text, grid = paint(Ink.TEXT), paint(Ink.GRID)
    return {
        "text.parse_math": False,
        "text.color": text,
        "axes.facecolor": "none",
        "axes.edgecolor": grid,
        "axes.labelcolor": text,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "grid.color": grid,
        "grid.linewidth": 0.6,
        "xtick.color": grid,
        "ytick.color": grid,
        "xtick.labelcolor": text,
        "ytick.labelcolor": text,
        "font.size": 11,
        "xtick.major.pad": 7,
    }


def _adapted(text: str, *, canvas: Canvas) -> str:
    svg = text[text.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*;?", "", svg)
    svg = re.sub(r"font: (?:[^;\"]* )?([\d.]+px) [^;\"]*", r"font-size: \1", svg)
    for ink in Ink:
        svg = svg.replace(str(ink), f"var({ink.variable})")
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{canvas.name}-", svg)
    for gid, tooltip in canvas.tooltips.items():
        opening = f'<g id="{canvas.name}-{gid}">'
        svg = svg.replace(opening, f"{opening}<title>{escape(tooltip)}</title>", 1)
    for placeholder, label in canvas.texts.items():
        svg = svg.replace(f">{placeholder}</text>", f">{escape(label)}</text>", 1)
    return svg.replace(svg[: svg.index(">") + 1], _opening(canvas), 1).strip()


def _opening(canvas: Canvas) -> str:
    name, width, height = canvas.name, canvas.width, canvas.height
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" role="img" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(canvas.title)}</title><desc id="{name}-d">{escape(canvas.description)}</desc>'
    )
