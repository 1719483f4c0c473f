"""The main figures and charts of a report as one PNG, for mails and chats that show no HTML."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.reporting.cards import figures
from airflow_hudi_maint.core.reporting.facts import ReportFacts
from airflow_hudi_maint.core.reporting.forecast_chart import HORIZON_INKS, forecast_chart
from airflow_hudi_maint.core.reporting.histogram import size_histogram
from airflow_hudi_maint.core.reporting.history_chart import history_chart
from airflow_hudi_maint.core.reporting.inks import Ink, in_light
from airflow_hudi_maint.core.reporting.insight_tables import horizon_rows
from airflow_hudi_maint.core.reporting.narrative import headline, state_of_table
from airflow_hudi_maint.core.reporting.svg import POINTS_PER_INCH, Chart, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

_WIDTH = 980
_MARGIN = 30
_HEADER, _LINE, _CARDS = 74, 24, 78
_CHART_HEADER, _LEGEND = 52, 22
_PIXELS_PER_INCH = 144
_LEAD_LETTERS, _TEXT_LETTERS, _NAME_LETTERS = 88, 142, 70
_MOST_LINES = 3
_MUTED = "#56637a"
_DARKEST = "#17202c"
_VERDICTS = {"better": "#11734a", "worse": "#b3261e"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One chart of the picture, with the keys of its legend."""

    chart: Chart
    legend: Sequence[tuple[str, Ink]] = ()

    @property
    def header_height(self) -> int:
        return _CHART_HEADER + _LINE * (len(self.sentences) - 1) + (_LEGEND if self.legend else 0)

    @property
    def sentences(self) -> list[str]:
        return _lines(self.chart.sentence, letters=_TEXT_LETTERS)


def render_picture(facts: ReportFacts) -> bytes:
    """Draw the picture, in light colours; the same facts give the same bytes with the same matplotlib.

    Letters that matplotlib's font lacks are drawn as boxes; the page has them all.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    parts = _parts(facts)
    lead = _lines(headline(facts), letters=_LEAD_LETTERS)
    heights = [_HEADER + _LINE * (len(lead) + 1), _CARDS]
    for part in parts:
        heights += [part.header_height, part.chart.canvas.height]
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(style(in_light))
        figure = Figure(
            figsize=(_WIDTH / POINTS_PER_INCH, (sum(heights) + _MARGIN) / POINTS_PER_INCH), facecolor="white"
        )
        rows = _rows(figure, heights=heights)
        _draw_header(rows[0], facts=facts, lead=lead)
        _draw_cards(rows[1], facts=facts)
        for place, part in enumerate(parts):
            _draw_chart_header(rows[2 + 2 * place], part=part)
            part.chart.draw(rows[3 + 2 * place], in_light)
        out = BytesIO()
        figure.savefig(out, format="png", dpi=_PIXELS_PER_INCH, metadata={"Software": None})
    return out.getvalue()


def _parts(facts: ReportFacts) -> list[_Part]:
    insight, found = facts.insight, []
    if histogram := size_histogram(before=facts.before, after=facts.after):
        keys = [("before", Ink.BEFORE), ("after", Ink.AFTER)] if facts.before else [("now", Ink.AFTER)]
        found.append(_Part(chart=histogram, legend=keys))
    if insight.forecast and (forecast := forecast_chart(insight.forecast)):
        inks = [HORIZON_INKS[one.horizon] for one in insight.forecast.totals]
        rows = horizon_rows(insight.forecast)
        keys = [(f"{row.name}: {row.partitions}", ink) for row, ink in zip(rows, inks, strict=True)]
        found.append(_Part(chart=forecast, legend=keys))
    if history := history_chart(insight.history, now=facts.now, zone=facts.zone):
        found.append(_Part(chart=history))
    return found


def _rows(figure: Figure, *, heights: Sequence[int]) -> list[SubFigure]:
    """Parts of the figure, one below the other, with a margin at the end."""
    from matplotlib.gridspec import GridSpec

    grid = GridSpec(len(heights) + 1, 1, figure=figure, height_ratios=[*heights, _MARGIN], hspace=0, left=0, right=1)
    grid.update(top=1, bottom=0)
    return [figure.add_subfigure(grid[place, 0], facecolor="none") for place in range(len(heights))]


def _draw_header(part: SubFigure, *, facts: ReportFacts, lead: Sequence[str]) -> None:
    after, height = facts.after, _HEADER + _LINE * (len(lead) + 1)
    left = _MARGIN / _WIDTH
    part.text(left, 1 - 38 / height, _cut(facts.title, _NAME_LETTERS // 2), fontsize=21, weight="bold", color=_DARKEST)
    about = f"{_cut(after.base_path, _NAME_LETTERS)} · {after.table_type.lower().replace('_', ' ')}, "
    about += f"table version {after.table_version} · as of {after.as_of_instant}"
    part.text(left, 1 - 58 / height, about, fontsize=10.5, color=_MUTED)
    for number, line in enumerate(lead):
        place = 1 - (_HEADER + 14 + _LINE * number) / height
        part.text(left, place, line, fontsize=14, weight="bold", color=_DARKEST)
    place = 1 - (_HEADER + 12 + _LINE * len(lead)) / height
    part.text(left, place, state_of_table(facts), fontsize=11, color=_DARKEST)
    if facts.insight.health:
        severity = str(facts.insight.health.severity)
        colour = {"ok": _VERDICTS["better"], "critical": _VERDICTS["worse"]}.get(severity, in_light(Ink.LIMIT))
        part.text(
            1 - left, 1 - 38 / height, f"health: {severity}", fontsize=12, weight="bold", color=colour, ha="right"
        )


def _draw_cards(part: SubFigure, *, facts: ReportFacts) -> None:
    shown = figures(before=facts.before, after=facts.after)
    width = (_WIDTH - 2 * _MARGIN) / len(shown)
    for place, one in enumerate(shown):
        left = (_MARGIN + place * width) / _WIDTH
        part.text(left, 0.62, one.label, fontsize=9.5, color=_MUTED)
        part.text(left, 0.33, one.after_text, fontsize=15, weight="bold", color=_DARKEST)
        if one.before is not None and one.before != one.after:
            colour = _VERDICTS.get(one.verdict, _MUTED)
            part.text(left, 0.12, f"from {one.before_text} ({one.change})".replace(" ()", ""), fontsize=9, color=colour)


def _draw_chart_header(row: SubFigure, *, part: _Part) -> None:
    from matplotlib.patches import Patch

    height, left = part.header_height, _MARGIN / _WIDTH
    row.text(left, 1 - 26 / height, part.chart.canvas.title, fontsize=13, weight="bold", color=_DARKEST)
    for number, line in enumerate(part.sentences):
        row.text(left, 1 - (44 + (_LINE - 8) * number) / height, line, fontsize=10, color=_MUTED)
    if part.legend:
        keys = [Patch(facecolor=in_light(ink), label=label) for label, ink in part.legend]
        row.legend(
            handles=keys,
            loc="lower left",
            bbox_to_anchor=(left, 0),
            ncols=len(keys),
            frameon=False,
            fontsize=10,
            labelcolor=_MUTED,
            borderaxespad=0,
            borderpad=0,
            handlelength=0.9,
            handleheight=0.9,
            handletextpad=0.5,
            columnspacing=1.6,
        )


def _lines(text: str, *, letters: int) -> list[str]:
    """The text in lines; what is longer than a few ends with an ellipsis."""
    lines = wrap(text, letters)
    return lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], f"{lines[_MOST_LINES - 1]} …"]


def _cut(text: str, letters: int) -> str:
    return text if len(text) <= letters else f"{text[: letters // 2 - 1]}…{text[-letters // 2 :]}"
