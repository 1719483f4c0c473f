"""Settings that contradict each other, by cases."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.model.health import Severity
from airflow_hudi_maint.core.planning.setting_conflicts import setting_conflicts
from airflow_hudi_maint.core.planning.writer_settings import WriterSettings
from tests.unit.core.planning.health_builders import config

MULTI = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
ZOOKEEPER = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"}
IN_PROCESS = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {**MULTI, **ZOOKEEPER},
        {**MULTI, **ZOOKEEPER, "hoodie.clean.failed.writes.policy": "LAZY"},
        {"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.commits.retained": "99"},
        {"hoodie.clustering.inline": "true", "hoodie.compact.schedule.inline": "true"},
        {"hoodie.clustering.plan.strategy.target.file.max.bytes": "2147483648"},
    ],
)
def test_settings_that_agree(options: dict[str, str]) -> None:
    """Also those that only look odd."""
    assert setting_conflicts(config(), write_options=options) == ()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"hoodie.clean.commits.retained": "20"}, "hoodie.clean.commits.retained=20 is not below hoodie.keep.min"),
        ({"hoodie.cleaner.commits.retained": "25"}, "hoodie.cleaner.commits.retained=25 is not below hoodie.keep.min"),
        ({"hoodie.keep.min.commits": "30"}, "hoodie.keep.min.commits=30 is not below hoodie.keep.max.commits=30"),
        ({"hoodie.parquet.small.file.limit": "125829120"}, "a full file still counts as small"),
        ({"hoodie.parquet.max.file.size": "1048576"}, "a full file still counts as small"),
        ({"hoodie.clustering.plan.strategy.small.file.limit": "1073741824"}, "what clustering has written"),
        ({"hoodie.clustering.plan.strategy.max.bytes.per.group": "1073741823"}, "no group can fill a file"),
        ({"hoodie.clustering.inline": "true", "hoodie.clustering.async.enabled": "true"}, "are both true"),
        ({"hoodie.compact.inline": "TRUE", "hoodie.compact.schedule.inline": "True"}, "are both true"),
        ({"hoodie.clean.async.enabled": "true", "hoodie.clean.automatic": "false"}, "does nothing while"),
        ({"hoodie.archive.async": "true", "hoodie.archive.automatic": "false"}, "does nothing while"),
        ({"hoodie.keep.max.commits": "many"}, "hoodie.keep.max.commits is no whole number"),
        ({**MULTI, **IN_PROCESS}, "InProcessLockProvider works within one process only"),
        (ZOOKEEPER, "is set without hoodie.write.concurrency.mode"),
    ],
)
def test_one_contradiction_is_a_warning_that_names_the_setting(options: dict[str, str], named: str) -> None:
    """And its advice names one, too."""
    (found,) = setting_conflicts(config(), write_options=options)
    assert named in found.found
    assert "hoodie." in found.advice
    assert found.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (MULTI, "is set without hoodie.write.lock.provider"),
        ({**MULTI, "hoodie.write.lock.provider": " "}, "is set without hoodie.write.lock.provider"),
        ({**MULTI, **ZOOKEEPER, "hoodie.clean.failed.writes.policy": "EAGER"}, "each rolls back what another"),
        ({**MULTI, **ZOOKEEPER, "hoodie.cleaner.policy.failed.writes": "eager"}, "each rolls back what another"),
        ({"hoodie.write.auto.upgrade": "true"}, "contradicts hoodie.write.auto.upgrade=false"),
        ({"spark.sql.shuffle.partitions": "8"}, "is no Hudi option"),
    ],
)
def test_what_endangers_the_table_or_stops_every_job_is_critical(options: dict[str, str], named: str) -> None:
    """A missing lock provider is not said twice."""
    (found,) = setting_conflicts(config(), write_options=options)
    assert named in found.found
    assert found.severity is Severity.CRITICAL


def test_what_the_table_says_counts_and_options_go_before_it() -> None:
    """hoodie.properties may hold a setting."""
    table = config(hoodie__keep__max__commits="10")
    (found,) = setting_conflicts(table, write_options={})
    assert "hoodie.keep.max.commits=10" in found.found
    assert setting_conflicts(table, write_options={"hoodie.keep.max.commits": "40"}) == ()


def test_the_worst_contradiction_comes_first() -> None:
    """Its advice is the one that is shown."""
    found = setting_conflicts(config(), write_options={**MULTI, "hoodie.keep.max.commits": "5"})
    assert [one.severity for one in found] == [Severity.CRITICAL, Severity.WARNING]


def test_a_table_of_version_6_is_spoken_of_in_words_that_its_writers_read() -> None:
    """Hudi before 1.0 does not know the newer names, and would ignore them."""
    (found,) = setting_conflicts(config(version=6), write_options={"hoodie.keep.min.commits": "10"})
    assert found.advice == "Set hoodie.cleaner.commits.retained below hoodie.keep.min.commits."


def test_an_unreadable_number_counts_as_the_default() -> None:
    """So that one typing error does not hide everything else."""
    assert WriterSettings(given={"hoodie.keep.max.commits": "x"}).number("hoodie.keep.max.commits") == 30
