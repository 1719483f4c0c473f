"""The HTML page: well-formed, self-contained, escaped, and true to the statistics."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from airflow_hudi_maint.core.model.plan import Decision, ExpiryPlan
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics
from airflow_hudi_maint.core.reporting.page import render_report

sys.path.insert(0, str(Path(__file__).parent))
import flights

NOW = datetime(2026, 11, 30, 6, 17, tzinfo=UTC)
VOID = frozenset({"meta", "br", "link", "img", "hr", "input"})


def render(
    *,
    before: TableStatistics | None = flights.BEFORE,
    after: TableStatistics = flights.AFTER,
    reports: tuple[StepReport, ...] = flights.REPORTS,
    expiry_plan: ExpiryPlan | None = flights.EXPIRY_PLAN,
    title: str = "Maintenance of flights",
) -> str:
    return render_report(
        before=before,
        after=after,
        reports=reports,
        expiry_plan=expiry_plan,
        clustering_plan=flights.CLUSTERING_PLAN,
        title=title,
        now=NOW,
        zone=UTC,
    )


class Page(HTMLParser):
    """What a page consists of; fails on a tag that is closed out of order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts))


def no_partitions() -> TableStatistics:
    return flights.table()


def many_partitions() -> TableStatistics:
    return flights.table(
        *(flights.partition(f"day={number:05d}", file_bytes=(1000 + number,)) for number in range(1200))
    )


VARIANTS = {
    "a whole run": {},
    "first run": {"before": None},
    "dry run": {"after": flights.BEFORE, "reports": (flights.expire_report(outcome=Outcome.DRY_RUN),)},
    "statistics only": {"before": None, "reports": (), "expiry_plan": None},
    "an empty table": {"before": None, "after": no_partitions(), "reports": ()},
    "all is gone": {"after": no_partitions()},
    "many partitions": {"before": None, "after": many_partitions(), "reports": ()},
}


@cache
def variant(name: str) -> str:
    return render(**VARIANTS[name])


@pytest.mark.parametrize("name", VARIANTS)
def test_tags_are_balanced_and_ids_unique(name: str) -> None:
    page = Page(variant(name))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert page.open == []
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_is_loaded_and_nothing_runs(name: str) -> None:
    text = variant(name)
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "image", "form"} & {tag for tag, _ in page.tags}
    addresses = [
        value or ""
        for _, attributes in page.tags
        for key, value in attributes.items()
        if key in {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}
    ]
    assert [address for address in addresses if not address.startswith("#")] == []
    assert re.findall(r"@import|url\((?!#)", text) == []
    without_namespaces = re.sub(r'xmlns(:xlink)?="http://www\.w3\.org/[^"]*"', "", text)
    assert re.findall(r"https?://", without_namespaces) == []
    assert [name for _, attributes in page.tags for name in attributes if name.startswith("on")] == []


def test_references_within_the_charts_resolve() -> None:
    text = variant("a whole run")
    ids = set(re.findall(r' id="([^"]+)"', text))
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert {one or other for one, other in used} <= ids


def test_charts_have_a_title_and_a_description() -> None:
    text = variant("a whole run")
    charts = [attributes for tag, attributes in Page(text).tags if tag == "svg"]
    assert [chart["role"] for chart in charts] == ["img", "img"]
    assert [chart["aria-labelledby"] for chart in charts] == ["sizes-t sizes-d", "partitions-t partitions-d"]
    assert "before: 144 files, median 545 KiB; after: 27 files" in text
    assert ">9 expired, 27 clustered</desc>" in text


def test_the_colours_of_the_charts_come_from_the_stylesheet() -> None:
    text = variant("a whole run")
    style = text[text.index("<style>") : text.index("</style>")]
    used = set(re.findall(r"var\((--ink-[a-z]+)\)", text))
    assert "#a000" not in text
    assert {name for name in used if style.count(f"{name}:") != 2} == set()  # light and dark


def test_what_comes_from_the_table_is_escaped() -> None:
    evil = '<script>alert("x")</script>&$\\alpha$'
    after = flights.table(flights.partition(f"name={evil}", file_bytes=(1, 2)))
    after = replace(after, table_name=evil, reason=evil, base_path=f"/lake/{evil}")
    entry = replace(flights.expiry_entry("origin=EWR/month=1"), partition_path=f"name={evil}", reason=evil, policy=evil)
    text = render(
        before=None,
        after=after,
        reports=(replace(flights.expire_report(), message=evil, warnings=(evil,), plan_path=evil),),
        expiry_plan=replace(flights.EXPIRY_PLAN, entries=(entry,), warnings=(evil,)),
        title=evil,
    )
    page = Page(text)
    assert "<script" not in text
    assert page.open == []
    assert page.text.count(evil) >= 9


@pytest.mark.parametrize(
    "name", ["日付=二〇二六", "a$b$c", "x" * 300, "@1@", "#a00006", 'url(#x) id="y"', "tab\tin it"]
)
def test_a_partition_name_is_drawn_as_it_is(name: str) -> None:
    """Letters that matplotlib's font lacks, mathematics, long names, and what looks like our own placeholders."""
    after = flights.table(flights.partition(name, file_bytes=(5,)), flights.partition("second", file_bytes=(7,)))
    page = Page(render(before=None, after=after, reports=()))
    assert page.open == []
    assert f"{name}: kept, 5 B in 1 file" in "".join(page.texts)


def test_the_figures_are_those_of_the_statistics() -> None:
    text = variant("a whole run")
    for key, value in flights.AFTER.totals().items():
        if key in ("log_files", "records"):  # no card: there are no log files, and records are not known
            continue
        card = text[text.index(f'data-figure="{key}"') :]
        titles = re.findall(r'title="([\d,]+)"', card[: card.index("</div>\n</div>")])
        assert titles == [f"{flights.BEFORE.totals()[key]:,}", f"{value:,}"]


def test_the_partition_table_is_that_of_the_statistics() -> None:
    text = variant("a whole run")
    for row in flights.AFTER.partitions:
        cells = text[text.index(f'<td class="code"><code>{row.partition_path}</code>') :]
        exact = re.findall(r'title="([\d,]+) bytes"', cells[: cells.index("</tr>")])
        assert exact == [f"{flights.BEFORE.by_path[row.partition_path].total_bytes:,}", f"{row.total_bytes:,}"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "9 partitions with 19 MiB were expired; 108 files in 27 partitions were rewritten as 27."),
        (
            VARIANTS["dry run"],
            (
                "Dry run, nothing was changed: 9 partitions with 19 MiB would expire and 108 files in 27 partitions "
                "would be rewritten as about 27."
            ),
        ),
        (
            {"reports": (replace(flights.expire_report(), outcome=Outcome.NOTHING_TO_DO, instants=()),)},
            "Nothing had to be done: no partition expired and none needed rewriting.",
        ),
        (
            {"reports": (replace(flights.expire_report(), outcome=Outcome.ALREADY_DONE),)},
            "9 partitions with 19 MiB were expired (by an earlier try).",
        ),
        (
            {"reports": (flights.clustering_report(Step.SCHEDULE_CLUSTERING, seconds=9),)},
            "Clustering of 27 partitions was scheduled.",
        ),
    ],
)
def test_the_headline_says_what_happened(arguments: dict[str, object], sentence: str) -> None:
    assert f'<p class="lead">{sentence}</p>' in render(**arguments)


def test_long_tables_are_cut_and_say_so() -> None:
    statistics = many_partitions()
    entries = tuple(
        replace(flights.expiry_entry("origin=EWR/month=1"), partition_path=row.partition_path)
        for row in statistics.partitions
    )
    text = render(
        before=None,
        after=statistics,
        reports=(flights.expire_report(outcome=Outcome.DRY_RUN),),
        expiry_plan=replace(flights.EXPIRY_PLAN, entries=entries),
    )
    assert "The 40 largest partitions are drawn; 1,160 smaller ones are left out." in text
    assert f"700 more in <code>{flights.FOLDER}/plans/{flights.START}-expiry.json</code>" in text
    assert len(text) < 1_500_000


def test_a_blocked_partition_says_which_instant_holds_it() -> None:
    entry = replace(
        flights.expiry_entry("origin=EWR/month=1"), decision=Decision.BLOCKED, blocked_by="20261130060000000"
    )
    plan = replace(flights.EXPIRY_PLAN, entries=(entry,))
    text = render(after=flights.BEFORE, reports=(), expiry_plan=plan)
    assert "(held by 20261130060000000)" in text
    assert "1 blocked" in text


def test_instants_are_shown_as_moments_of_the_tables_zone() -> None:
    text = render_report(
        before=None,
        after=flights.AFTER,
        reports=(),
        expiry_plan=None,
        clustering_plan=None,
        title="t",
        now=NOW,
        zone=ZoneInfo("Asia/Tokyo"),
    )
    assert "(2026-11-30 06:15:33)" in text  # an instant is stamped in that zone
    assert "2026-11-30 15:17:00 JST" in text


def test_the_same_run_gives_the_same_page() -> None:
    assert render() == variant("a whole run")


def test_a_users_matplotlib_style_changes_nothing_and_is_left_alone() -> None:
    import matplotlib as mpl

    expected = variant("a whole run")
    with mpl.rc_context({"axes.facecolor": "red", "font.size": 40}):
        assert render() == expected
        assert mpl.rcParams["font.size"] == 40
