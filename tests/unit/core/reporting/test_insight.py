"""What the page shows beside the run: the forecast, the last instants, health, small files and how data is spread."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, Unit
from airflow_hudi_maint.core.model.health_facts import FileTotals
from airflow_hudi_maint.core.model.instant import Action, Instant, State, moment_instant
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.statistics import PartitionStatistics, TableStatistics
from airflow_hudi_maint.core.planning.expiry import ExpiryClock, ExpiryGuards
from airflow_hudi_maint.core.planning.expiry_forecast import ExpiryForecast, Horizon, forecast_expiry
from airflow_hudi_maint.core.reporting.facts import ReportFacts
from airflow_hudi_maint.core.reporting.forecast_chart import HORIZON_INKS, MAX_POINTS, forecast_chart
from airflow_hudi_maint.core.reporting.history_chart import KIND_INKS, history_chart, time_ticks
from airflow_hudi_maint.core.reporting.inks import DARK, LIGHT, Ink
from airflow_hudi_maint.core.reporting.insight import NO_INSIGHT, OrphanTotals, PastInstant, TableInsight
from airflow_hudi_maint.core.reporting.insight_tables import small_file_sentence
from airflow_hudi_maint.core.reporting.mail import render_mail
from airflow_hudi_maint.core.reporting.page import render_facts
from airflow_hudi_maint.core.reporting.picture import render_picture

sys.path.insert(0, str(Path(__file__).parent))
import flights
from test_report import Page

NOW = datetime(2026, 11, 30, 6, 17, tzinfo=UTC)
EVIL = '<script>alert("x")</script>&$\\alpha$'


def days(count: int, *, each: int = 1) -> TableStatistics:
    """A table of partitions that were written one after the other, a day apart."""
    return flights.table(*(_day(number, part=part) for number in range(count) for part in range(each)))


def _day(number: int, *, part: int) -> PartitionStatistics:
    written = moment_instant(NOW - timedelta(days=number), zone=UTC)
    size = 1000 + (number * 7919 + part * 104_729) % 10_000_000
    return flights.partition(f"part={part}/day={number:05d}", file_bytes=(size,), instant=written)


def foreseen(statistics: TableStatistics, *policies: dict[str, object]) -> ExpiryForecast:
    return forecast_expiry(
        statistics,
        PolicySet.from_json(policies),
        scheme=PartitionScheme(fields=("part", "day"), hive_style=True),
        field_types={"day": "int"},
        pending={"part=0/day=00098": "20261129000000000"},
        zone=UTC,
        now=NOW,
        guards=ExpiryGuards(clock=ExpiryClock.WALL),
    )


KEEP_90 = {"partitionSpec": "part=*/", "policy": "KEEP_BY_TIME", "policyValue": 90}


def past(
    hours: float, *, action: Action = Action.COMMIT, seconds: float | None = 60, operation: str | None = None
) -> PastInstant:
    """An instant of so many hours ago; pending without seconds."""
    started = NOW - timedelta(hours=hours)
    completed = None if seconds is None else started + timedelta(seconds=seconds)
    return PastInstant(
        instant=Instant(
            requested_time=moment_instant(started, zone=UTC),
            action=action,
            state=State.COMPLETED if completed else State.REQUESTED,
            completion_time=None if completed is None else moment_instant(completed, zone=UTC),
            file_name=f"{hours}.{action}",
        ),
        operation=operation,
        started=started,
        completed=completed,
        partitions=3,
    )


HISTORY = (
    past(30, seconds=600, operation="BULK_INSERT"),
    past(29, action=Action.CLUSTERING, seconds=None),
    past(20, action=Action.REPLACE_COMMIT, operation="DELETE_PARTITION"),
    past(10, action=Action.REPLACE_COMMIT, operation="CLUSTER", seconds=3600),
    past(3, action=Action.CLEAN),
)


def health(*severities: Severity) -> TableHealth:
    return TableHealth(
        base_path=flights.BASE_PATH,
        table_name="flights",
        table_version=9,
        table_type="COPY_ON_WRITE",
        as_of_instant=flights.START,
        checked_at="2026-11-30T06:17:00+00:00",
        signals=tuple(
            HealthSignal(
                name=f"signal_{number}",
                value=number,
                unit=Unit.COUNT,
                severity=severity,
                found=f"Found {number}.",
                advice=f"Advice {number}.",
                threshold=2,
            )
            for number, severity in enumerate(severities)
        ),
    )


def facts(
    *, after: TableStatistics = flights.AFTER, insight: TableInsight = NO_INSIGHT, reports: tuple[StepReport, ...] = ()
) -> ReportFacts:
    return ReportFacts(
        before=None,
        after=after,
        reports=reports,
        expiry_plan=None,
        clustering_plan=None,
        title="The state of flights",
        now=NOW,
        zone=UTC,
        insight=insight,
    )


WHOLE = TableInsight(
    forecast=foreseen(days(100), KEEP_90),
    history=HISTORY,
    health=health(Severity.OK, Severity.WARNING, Severity.CRITICAL, Severity.UNKNOWN),
    active_instants=5,
    archive=FileTotals(count=2, bytes=4096),
    orphans=OrphanTotals(by_partition=(("part=0/day=00001", FileTotals(count=2, bytes=2048)),)),
    problems=("The size of something: it is broken",),
)


@cache
def whole_page() -> str:
    return render_facts(facts(after=days(100), insight=WHOLE))


def test_the_whole_page_is_balanced_and_loads_nothing() -> None:
    text = whole_page()
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    assert page.open == []
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in links} <= set(ids)
    assert not {"script", "link", "img", "image", "iframe", "object"} & {tag for tag, _ in page.tags}
    assert re.findall(r"https?://", re.sub(r'xmlns(:xlink)?="[^"]*"', "", text)) == []
    assert "#a000" not in text


def test_each_chart_has_a_name_a_description_and_a_sentence() -> None:
    page = Page(whole_page())
    charts = [attributes for tag, attributes in page.tags if tag == "svg"]
    named = [attributes["aria-labelledby"] for attributes in charts]
    assert named == [f"{name}-t {name}-d" for name in ("sizes", "forecast", "partitions", "history")]
    for sentence in (
        "Half of the 100 data files have at most",
        "8 partitions with ",
        " would expire now; 1 partition with ",
        " would expire now, but is blocked; 8 partitions with ",
        "The 40 largest partitions are drawn; 60 smaller ones are left out. The largest is part=0/day=",
        "The last 4 completed instants; the longest was a clustering of 1 h 0 min. 1 is pending, for 1 d 5 h.",
    ):
        assert sentence in page.text


def test_the_forecast_counts_what_goes_in_each_horizon() -> None:
    page = Page(whole_page())
    forecast = WHOLE.forecast
    assert forecast is not None
    counts = {one.horizon: one.partitions for one in forecast.totals}
    assert counts == {
        Horizon.NOW: 8,
        Horizon.BLOCKED: 1,
        Horizon.WEEK: 8,
        Horizon.MONTH: 23,
        Horizon.LATER: 59,
        Horizon.KEPT: 1,  # the newest
    }
    for horizon, count in counts.items():
        assert f"{horizon}: {count} (" in page.text
    assert "part=0/day=00099" in page.text
    assert "modified 99.0 days ago, kept 90 days" in page.text


def test_without_an_expiry_plan_the_partition_chart_goes_by_the_forecast() -> None:
    """The two charts of one page must not say different things of a partition."""
    assert "would expire (8)" in Page(whole_page()).text


def test_a_table_without_policies_says_so() -> None:
    statistics = days(3)
    text = Page(render_facts(facts(after=statistics, insight=TableInsight(forecast=foreseen(statistics))))).text
    assert "The table has no TTL policy, so no partition expires." in text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_table_of_few_partitions_has_a_page_and_a_picture(count: int) -> None:
    statistics = days(count)
    shown = facts(after=statistics, insight=TableInsight(forecast=foreseen(statistics, KEEP_90)))
    page = Page(render_facts(shown))
    assert page.open == []
    assert ("The table has no partitions with data." in page.text) is (count == 0)
    assert render_picture(shown).startswith(b"\x89PNG")


def test_many_partitions_are_drawn_as_few_bubbles() -> None:
    """The page of a table of 40,000 partitions is as small as that of one of 400."""
    statistics = days(400, each=100)
    forecast = foreseen(statistics, KEEP_90)
    chart = forecast_chart(forecast)
    assert chart is not None
    drawn = chart.svg().count('<g id="forecast-bubble_')
    assert MAX_POINTS < len(statistics.partitions)
    assert drawn < 1000
    told = sum(int(one.replace(",", "")) for one in re.findall(r"<title>[a-z0-9 ]+: ([\d,]+) partition", chart.svg()))
    assert told == len(statistics.partitions)
    assert len(render_facts(facts(after=statistics, insight=TableInsight(forecast=forecast)))) < 1_000_000


def test_a_pending_instant_is_listed_with_its_age_and_drawn_as_an_outline() -> None:
    text = whole_page()
    pending = text[text.index("<h3>Pending</h3>") :]
    assert "1 d 5 h" in pending[: pending.index("</table>")]
    chart = history_chart(HISTORY, now=NOW, zone=UTC)
    assert chart is not None
    assert "clustering, 3 partitions, requested for 1 d 5 h" in chart.svg()
    assert chart.svg().count("stroke-dasharray") >= 1


@pytest.mark.parametrize(
    ("action", "operation", "kind"),
    [
        (Action.COMMIT, "UPSERT", "write"),
        (Action.COMMIT, "COMPACT", "compaction"),
        (Action.REPLACE_COMMIT, "cluster", "clustering"),
        (Action.REPLACE_COMMIT, "DELETE_PARTITION", "drop"),
        (Action.REPLACE_COMMIT, "INSERT_OVERWRITE", "replace"),
        (Action.REPLACE_COMMIT, None, "replace"),
        (Action.ROLLBACK, None, "rollback"),
    ],
)
def test_an_instant_is_named_by_what_it_did(action: Action, operation: str | None, kind: str) -> None:
    found = past(1, action=action, operation=operation)
    assert (found.kind, kind in KIND_INKS) == (kind, True)


def test_instants_that_are_no_moments_are_listed_and_not_drawn() -> None:
    odd = replace(HISTORY[0], instant=replace(HISTORY[0].instant, requested_time="00000000000000"), started=None)
    assert history_chart((odd,), now=NOW, zone=UTC) is None
    page = Page(render_facts(facts(insight=TableInsight(history=(odd,)))))
    assert page.open == []
    assert "00000000000000" in page.text


@pytest.mark.parametrize("span", [timedelta(seconds=3), timedelta(hours=2), timedelta(days=9), timedelta(days=4000)])
def test_time_axes_have_few_ticks_at_round_times(span: timedelta) -> None:
    ticks = time_ticks(NOW - span, NOW, zone=UTC)
    assert 2 <= len(ticks) <= 9
    assert all(NOW - span <= moment <= NOW for moment, _ in ticks)
    assert len({label for _, label in ticks}) == len(ticks)


def test_health_shows_what_is_bad_first_and_folds_the_rest() -> None:
    text = whole_page()
    section = text[text.index('id="health"') : text.index('id="files"')]
    bad, folded = section.split("<details>")
    assert bad.index("Found 2.") < bad.index("Found 1.")
    assert "Advice 2." in bad
    assert "Found 0." not in bad
    assert {"Found 0.", "Found 3."} <= set(re.findall(r"Found \d\.", folded))
    assert "Advice 0." not in section  # there is nothing to do about what is fine
    assert '<a class="pill critical" href="#health">health: critical</a>' in text


def test_what_could_not_be_told_is_on_the_page() -> None:
    assert "The size of something: it is broken" in Page(whole_page()).text


def test_small_files_are_told_by_partition() -> None:
    text = Page(render_facts(facts(after=flights.BEFORE))).text
    assert small_file_sentence(flights.BEFORE) in text
    assert small_file_sentence(flights.BEFORE).startswith("144 small files lie in 36 partitions")
    assert "24 more have small files" in text
    assert 'id="small"' not in render_facts(facts(after=flights.AFTER))


def test_what_comes_from_the_table_is_escaped_in_page_and_mail() -> None:
    statistics = flights.table(flights.partition(f"part={EVIL}/day=1", file_bytes=(1,)))
    sick = replace(health(Severity.CRITICAL), signals=(replace(health(Severity.CRITICAL).signals[0], found=EVIL),))
    insight = TableInsight(
        forecast=foreseen(statistics, KEEP_90),
        history=(replace(HISTORY[0], operation=EVIL),),
        health=sick,
        problems=(EVIL,),
    )
    report = replace(flights.expire_report(), message=EVIL, warnings=(EVIL,))
    shown = replace(facts(after=statistics, insight=insight, reports=(report,)), title=EVIL)
    for text in (render_facts(shown), render_mail(shown, report_path=f"/lake/{EVIL}")):
        assert "<script" not in text
        assert Page(text).open == []
        assert Page(text).text.count(EVIL) >= 4
    assert render_picture(shown).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("report", "sentence"),
    [
        (
            {"step": Step.CLEAN, "files_before": 12, "bytes_before": 2048},
            "12 old files with 2 KiB were deleted by Hudi's cleaner.",
        ),
        ({"step": Step.RESTORE, "partitions": ("a", "b")}, "2 partitions were restored."),
        ({"step": Step.RELEASE_SAVEPOINTS, "instants": ("1",)}, "1 savepoint was released."),
    ],
)
def test_every_step_has_a_sentence(report: dict[str, object], sentence: str) -> None:
    given = {"step": Step.CLEAN, "outcome": Outcome.DONE, "message": "", "base_path": "", "base_instant": "", **report}
    text = render_facts(facts(reports=(StepReport(**given),)))  # type: ignore[arg-type]
    assert f'<p class="lead">{sentence}</p>' in text.replace("&#39;", "'")


def test_a_partition_that_was_dropped_and_restored_is_restored() -> None:
    path = flights.AFTER.partitions[0].partition_path
    dropped = replace(flights.expire_report(), partitions=(path,))
    restored = replace(dropped, step=Step.RESTORE)
    assert "restored (1)" in Page(render_facts(facts(reports=(dropped, restored)))).text


def test_the_picture_is_a_png_and_the_same_for_the_same_facts() -> None:
    shown = facts(after=days(100), insight=WHOLE)
    picture = render_picture(shown)
    assert picture == render_picture(shown)
    assert picture.startswith(b"\x89PNG")
    assert 20_000 < len(picture) < 600_000


def test_a_mail_is_short_and_plain_whatever_the_table_is_like() -> None:
    steps = tuple(replace(flights.expire_report(), message="x" * 5000, warnings=("y" * 5000,)) for _ in range(40))
    sick = TableInsight(health=health(*[Severity.CRITICAL] * 30), forecast=WHOLE.forecast)
    text = render_mail(facts(after=days(100), insight=sick, reports=steps), report_path="/lake/report.html")
    assert len(text) < 20_000
    assert Page(text).open == []
    assert "24 more" in text
    assert "/lake/report.html" in text
    assert "<style" not in text
    assert "class=" not in text


def test_every_colour_is_there_in_light_and_dark() -> None:
    assert set(LIGHT) == set(DARK) == set(Ink)
    assert set(HORIZON_INKS) == set(Horizon)
    assert len({LIGHT[ink] for ink in HORIZON_INKS.values()}) == len(Horizon)
