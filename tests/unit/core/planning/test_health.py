"""Each signal by cases: what is seen of a table, and what is said of it."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from airflow_hudi_maint.core.model.health import NOTHING_TO_DO, Severity
from airflow_hudi_maint.core.model.health_facts import CleanFacts
from airflow_hudi_maint.core.planning.health import judge_health
from airflow_hudi_maint.core.planning.health_thresholds import HealthThresholds, Limits
from tests.unit.core.planning.builders import partition
from tests.unit.core.planning.health_builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    ago,
    config,
    done,
    facts,
    instant,
    plan,
    requested,
    signal,
    small_files,
    timeline,
    with_files,
)

MOR = config(merge_on_read=True)


def clean(seconds: float, *, earliest: str | None = None, failed: int = 0) -> CleanFacts:
    return CleanFacts(instant=instant(done(seconds, "clean")), earliest_retained=earliest, failed_file_count=failed)


# ------------------------------------------------------------------------------------------------------- the whole


def test_a_young_healthy_table_is_ok_in_everything() -> None:
    """And every signal says that there is nothing to do."""
    health = judge_health(facts(done(2 * HOUR), done(HOUR), statistics=with_files(small_files("day=1", 1))), now=NOW)
    assert health.severity is Severity.OK
    assert {one.advice for one in health.signals} == {NOTHING_TO_DO}
    assert health.as_of_instant == ago(HOUR)
    assert (health.base_path, health.table_name, health.table_version) == ("/lake/trips", "trips", 9)


def test_an_empty_table_has_nothing_wrong_and_no_last_write() -> None:
    """A table that was only created."""
    health = judge_health(facts(), now=NOW)
    assert [one.name for one in health.of(Severity.UNKNOWN)] == [
        "last_write_seconds",
        "small_file_ratio",
        "micro_partition_ratio",
    ]
    assert health.of(Severity.WARNING) == health.of(Severity.CRITICAL) == ()


def test_the_same_signals_are_there_whatever_is_pending() -> None:
    """A metric without holes can be alerted on."""
    calm, busy = facts(done(DAY)), facts(requested(DAY), requested(HOUR, "clean"), doubly_completed=(ago(1),))
    names = [{one.name for one in judge_health(seen, now=NOW).signals} for seen in (calm, busy)]
    assert names[0] == names[1]


def test_every_threshold_belongs_to_a_signal() -> None:
    """A merge-on-read table with a metadata table, whose orphans were looked for, has all; two have no limit."""
    full = config(merge_on_read=True, hoodie__table__metadata__partitions="files")
    names = {one.name for one in judge_health(facts(config=full, orphans=()), now=NOW).signals}
    assert names - {one.name for one in fields(HealthThresholds)} == {"bundle_mismatch", "contradicting_settings"}
    assert {one.name for one in fields(HealthThresholds)} <= names


def test_texts_are_sentences() -> None:
    """One for what was found, one for what to do."""
    seen = facts(
        requested(9 * DAY), requested(8 * DAY, "rollback"), done(9 * DAY, "savepoint"), doubly_completed=(ago(1),)
    )
    for one in judge_health(seen, now=NOW).signals:
        assert one.found.endswith(".")
        assert one.advice.endswith(".")
        assert not one.found.endswith("..")
        assert ". " not in one.advice


# --------------------------------------------------------------------------------------------------------- pending


@pytest.mark.parametrize(
    ("action", "name"),
    [
        ("commit", "write"),
        ("deltacommit", "write"),
        ("replacecommit", "replace"),
        ("clustering", "clustering"),
        ("compaction", "compaction"),
        ("logcompaction", "log_compaction"),
        ("clean", "clean"),
        ("rollback", "rollback"),
        ("restore", "restore"),
        ("savepoint", "savepoint"),
        ("indexing", "indexing"),
    ],
)
def test_the_oldest_pending_instant_of_each_kind_has_its_age(action: str, name: str) -> None:
    """Ages count from the request; the younger one is counted, too."""
    found = signal(f"pending_{name}_seconds", facts(requested(9 * DAY, action), requested(HOUR, action), config=MOR))
    assert (found.value, found.severity) == (9 * DAY, Severity.CRITICAL)
    assert ago(9 * DAY) in found.found
    assert "1 younger one" in found.found
    assert len(found.details) == 2


def test_an_age_that_is_exactly_the_limit_has_reached_it() -> None:
    """The boundary belongs to the warning."""
    limits = HealthThresholds(pending_write_seconds=Limits(warning=HOUR, critical=2 * HOUR))
    ages = {
        age: signal("pending_write_seconds", facts(requested(age)), thresholds=limits) for age in (3599, HOUR, 7200)
    }
    assert [str(one.severity) for one in ages.values()] == ["ok", "warning", "critical"]


def test_on_version_6_a_plan_tells_a_clustering_from_an_overwrite() -> None:
    """Both are pending replace commits there."""
    names = requested(2 * DAY, "replacecommit"), requested(7 * HOUR, "replacecommit")
    seen = facts(*names, config=config(version=6), plans=(plan(names[0], partitions=("day=1", "day=2")),))
    assert signal("pending_replace_seconds", seen).value == 7 * HOUR
    clustering = signal("pending_clustering_seconds", seen)
    assert clustering.value == 2 * DAY
    assert "holds 2 file groups of 2 partitions" in clustering.found


@pytest.mark.parametrize(
    ("version", "key"), [(6, "hoodie.cleaner.policy.failed.writes"), (9, "hoodie.clean.failed.writes.policy")]
)
def test_advice_names_a_setting_as_the_tables_writers_read_it(version: int, key: str) -> None:
    """Hudi before 1.0 does not know the newer name."""
    found = signal("pending_write_seconds", facts(requested(DAY), config=config(version=version)))
    assert f"{key}=LAZY" in found.advice


def test_a_broken_plan_on_version_6_is_said_where_it_is_counted() -> None:
    """The reader knows then that the kind is a guess."""
    seen = facts(requested(DAY, "replacecommit"), config=config(version=6), unread={"plans": "x.requested is broken"})
    assert "may be a clustering, since plans could not be read: x.requested is broken" in (
        signal("pending_replace_seconds", seen).found
    )


def test_a_copy_on_write_table_has_no_compaction_to_wait_for() -> None:
    """Unless there is one after all."""
    names = {one.name for one in judge_health(facts(), now=NOW).signals}
    assert "pending_compaction_seconds" not in names
    assert signal("pending_compaction_seconds", facts(requested(DAY, "compaction"))).severity is Severity.WARNING


def test_a_pending_instant_from_the_future_has_the_age_0() -> None:
    """The clock has a signal of its own."""
    assert signal("pending_write_seconds", facts(requested(-HOUR))).value == 0


# -------------------------------------------------------------------------------------------------------- timeline


def test_active_instants_are_measured_by_what_archival_is_set_to() -> None:
    """With keep.max at 10 a warning comes from 15 on; only writes count, as in Hudi's archiver."""
    names = [*(done(n * MINUTE) for n in range(1, 16)), *(done(n * MINUTE + 1, "clean") for n in range(1, 9))]
    seen = facts(*names, write_options={"hoodie.keep.max.commits": "10", "hoodie.keep.min.commits": "5"})
    found = signal("active_instants", seen)
    assert (found.value, found.threshold, found.severity) == (15, 15, Severity.WARNING)
    assert signal("active_instants", facts(*names)).severity is Severity.OK


def test_what_stops_archival_is_named() -> None:
    """A pending write and a savepoint do."""
    names = [*(done(n * MINUTE) for n in range(1, 50)), requested(50 * MINUTE), done(51 * MINUTE, "savepoint")]
    found = signal("active_instants", facts(*names))
    assert f"archival stops at the pending {ago(50 * MINUTE)} (commit, requested)" in found.found
    assert f"the savepoint {ago(51 * MINUTE)}" in found.found
    assert "delete_savepoint" in found.advice


def test_delta_commits_count_from_the_last_compaction() -> None:
    """A completed commit of a merge-on-read table is one; the limit is a multiple of Hudi's own."""
    names = [done(n, "deltacommit") for n in range(1, 21)]
    seen = facts(*names, done(100), done(101, "deltacommit"), config=MOR)
    found = signal("delta_commits_since_compaction", seen)
    assert (found.value, found.threshold, found.severity) == (20, 20, Severity.WARNING)
    assert ago(100) in found.found


def test_a_delta_commit_that_ran_beside_the_compaction_counts() -> None:
    """It completed after the compaction was requested, so its log files are not in it."""
    beside = f"{ago(200)}_{ago(50)}.deltacommit"
    assert signal("delta_commits_since_compaction", facts(beside, done(100), config=MOR)).value == 1


def test_delta_commits_without_log_files_do_no_harm() -> None:
    """A merge-on-read table that is only inserted into."""
    names = [done(n, "deltacommit") for n in range(1, 200)]
    seen = facts(*names, config=MOR, statistics=with_files(small_files("day=1", 1)))
    found = signal("delta_commits_since_compaction", seen)
    assert found.severity is Severity.OK
    assert "no log file to compact" in found.found
    with_logs = with_files(replace(small_files("day=1", 1), log_file_count=3))
    assert signal("delta_commits_since_compaction", replace(seen, statistics=with_logs)).severity is Severity.CRITICAL


def test_the_metadata_table_is_judged_by_its_own_timeline() -> None:
    """A pending instant on the table is what commonly holds its compaction back."""
    metadata = timeline(*(done(n, "deltacommit") for n in range(1, 101)))
    seen = facts(requested(DAY), config=config(hoodie__table__metadata__partitions="files"), metadata_timeline=metadata)
    found = signal("metadata_delta_commits_since_compaction", seen)
    assert (found.value, found.critical_threshold, found.severity) == (100, 100, Severity.CRITICAL)
    assert ago(DAY) in found.found
    assert "hoodie.metadata.max.deltacommits.when_pending" in found.advice


def test_a_metadata_table_that_is_not_there_is_unknown() -> None:
    """hoodie.properties says that there is one."""
    seen = facts(config=config(hoodie__table__metadata__partitions="files"), metadata_timeline=timeline())
    assert signal("metadata_delta_commits_since_compaction", seen).severity is Severity.UNKNOWN


def test_a_table_without_a_metadata_table_has_no_such_signal() -> None:
    """Nothing to look at."""
    assert judge_health(facts(), now=NOW).signal("metadata_delta_commits_since_compaction") is None


def test_an_old_clean_is_a_warning_only_when_there_was_something_to_clean() -> None:
    """Ten commits the cleaner keeps anyway."""
    quiet = facts(*(done(n) for n in range(1, 11)), last_clean=clean(8 * DAY, earliest=ago(9)))
    found = signal("last_clean_seconds", quiet)
    assert (found.value, found.severity) == (8 * DAY, Severity.OK)
    assert f"since {ago(9)} (9 active writes)" in found.found
    busy = facts(*(done(n) for n in range(1, 12)), last_clean=clean(8 * DAY))
    assert signal("last_clean_seconds", busy).severity is Severity.WARNING


def test_many_commits_without_a_clean_are_a_warning_unless_they_are_bulk_inserts() -> None:
    """A clean that finds nothing leaves no instant, so its absence alone says little."""
    seen = facts(*(done(n) for n in range(1, 21)), recent_operations=("UPSERT",))
    assert signal("commits_since_clean", seen).severity is Severity.WARNING
    appended = replace(seen, recent_operations=("BULK_INSERT", "bulk_insert"))
    assert signal("commits_since_clean", appended).severity is Severity.OK
    assert signal("last_clean_seconds", seen).value is None


def test_commits_count_from_the_request_of_the_clean() -> None:
    """What completed while it ran was not looked at."""
    seen = facts(done(10), f"{ago(50)}_{ago(20)}.commit", done(60), last_clean=clean(30))
    assert signal("commits_since_clean", seen).value == 2


def test_a_clean_that_cannot_be_read_is_unknown() -> None:
    """With the reason."""
    found = signal("last_clean_seconds", facts(last_clean=clean(HOUR), unread={"clean": "x.clean is empty"}))
    assert (found.severity, found.found) == (Severity.UNKNOWN, "x.clean is empty.")


def test_files_that_the_cleaner_could_not_delete_are_a_warning() -> None:
    """Storage that refuses stays unnoticed otherwise."""
    assert signal("clean_failed_files", facts(last_clean=clean(HOUR, failed=2))).severity is Severity.WARNING


def test_a_feed_that_stopped_is_seen_by_the_last_write() -> None:
    """Cleans, clusterings and rollbacks are no feed."""
    seen = facts(done(8 * DAY), done(DAY, "replacecommit"), done(HOUR, "clean"), done(HOUR, "rollback"))
    found = signal("last_write_seconds", seen)
    assert (found.value, found.severity) == (8 * DAY, Severity.WARNING)


def test_an_overwrite_is_a_write_that_statistics_know_of() -> None:
    """A replace commit alone does not say whether it changed data."""
    rows = with_files(partition("day=1", modified=ago(DAY)))
    seen = facts(done(8 * DAY), f"{ago(DAY)}_{ago(HOUR)}.replacecommit", statistics=rows)
    assert signal("last_write_seconds", seen).value == HOUR


def test_a_compaction_is_no_write() -> None:
    """It completes as a commit on a merge-on-read table."""
    assert signal("last_write_seconds", facts(done(2 * DAY, "deltacommit"), done(HOUR), config=MOR)).value == 2 * DAY


def test_a_clock_that_is_ahead_is_measured_by_the_newest_time_of_any_kind() -> None:
    """A completion counts like a request."""
    seen = facts(f"{ago(60)}_{ago(-2 * HOUR)}.commit", requested(-60))
    found = signal("clock_ahead_seconds", seen)
    assert (found.value, found.severity) == (2 * HOUR, Severity.CRITICAL)
    assert "timeline_zone" in found.advice


def test_an_instant_that_is_no_date_is_no_age() -> None:
    """Its file name has the digits of one, and the thirteenth month."""
    found = signal("pending_write_seconds", facts("20261330000000000.commit.requested"))
    assert (found.value, found.severity) == (None, Severity.UNKNOWN)


def test_an_instant_that_is_completed_twice_is_named() -> None:
    """What a failed run_ttl leaves."""
    found = signal("doubly_completed_instants", facts(doubly_completed=(ago(60),)))
    assert (found.value, found.severity, found.details) == (1, Severity.WARNING, (ago(60),))
