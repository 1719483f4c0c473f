from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError, PendingActionError
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.instant import Action, State
from airflow_hudi_maint.core.model.table_config import TableConfig
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.planning.write_guard import (
    check_no_live_writer,
    has_lock_provider,
    live_writers,
    table_write_options,
)
from tests.unit.core.planning.builders import instant

OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
}
FIRST, SECOND = "20261130000000000", "20261130010000000"


def config(*metadata_partitions: str, version: int = 6, inflight: str = "") -> TableConfig:
    properties = {
        "hoodie.table.metadata.partitions.inflight": inflight,
        "hoodie.table.version": str(version),
        "hoodie.table.metadata.partitions": ",".join(metadata_partitions),
    }
    return TableConfig.from_properties(properties, base_path="/lake/trips")


def test_a_table_keeps_its_version_and_its_metadata_partitions() -> None:
    """Each metadata partition has its option, true or false as the table has it."""
    expected = {
        "hoodie.write.auto.upgrade": "false",
        "hoodie.write.table.version": "6",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "false",
        "hoodie.metadata.index.bloom.filter.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "false",
        "hoodie.metadata.record.index.enable": "false",
        "hoodie.metadata.global.record.level.index.enable": "false",
        "hoodie.metadata.record.level.index.enable": "false",
    }
    assert expected.items() <= table_write_options(config("files", "bloom_filters"), extra={}).items()


def test_a_job_runs_no_table_service_beside_its_own() -> None:
    """The retention of cleaning and archival is an option of the table's writers, which a job does not know."""
    options = table_write_options(config("files"), extra={})
    services = {
        "hoodie.clean.automatic",
        "hoodie.clean.async",
        "hoodie.clean.async.enabled",
        "hoodie.archive.automatic",
        "hoodie.archive.async",
        "hoodie.compact.inline",
        "hoodie.compact.schedule.inline",
        "hoodie.log.compaction.inline",
        "hoodie.clustering.inline",
        "hoodie.clustering.schedule.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.partition.ttl.inline",
    }
    assert dict.fromkeys(services, "false").items() <= options.items()


def test_a_user_who_knows_the_retention_may_have_a_job_clean() -> None:
    """Table services are off by default, not for good."""
    extra = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "50"}
    assert extra.items() <= table_write_options(config("files"), extra=extra).items()


def test_a_table_without_metadata_table_gets_none() -> None:
    """Hudi would make a metadata table by default."""
    assert table_write_options(config(version=9), extra={})["hoodie.metadata.enable"] == "false"


def test_a_record_index_is_the_global_one() -> None:
    """Left out, its option would delete the index; old and new Hudi name it differently."""
    options = table_write_options(config("files", "record_index"), extra={})
    expected = ("true", "true", "false")
    assert expected == (
        options["hoodie.metadata.record.index.enable"],
        options["hoodie.metadata.global.record.level.index.enable"],
        options["hoodie.metadata.record.level.index.enable"],
    )


def test_a_record_index_per_partition_is_named_by_the_user() -> None:
    """The table's properties do not tell the two kinds apart."""
    extra = {"hoodie.metadata.record.level.index.enable": "true"}
    options = table_write_options(config("files", "record_index"), extra=extra)
    assert ("false", "true") == (
        options["hoodie.metadata.global.record.level.index.enable"],
        options["hoodie.metadata.record.level.index.enable"],
    )


def test_the_users_own_options_go_along() -> None:
    """Options that contradict nothing are passed on, also those that say the same."""
    extra = {"hoodie.parquet.compression.codec": "zstd", "hoodie.write.auto.upgrade": "False"}
    options = table_write_options(config("files"), extra=extra)
    assert options["hoodie.parquet.compression.codec"] == "zstd"


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("spark.executor.memory", "4g", "no Hudi option"),
        ("hoodie.write.table.version", "9", "contradicts"),
        ("hoodie.write.auto.upgrade", "true", "contradicts"),
        ("hoodie.metadata.index.column.stats.enable", "true", "contradicts"),
        ("hoodie.metadata.record.level.index.enable", "true", "contradicts"),
        ("hoodie.datasource.write.operation", "upsert", "set by the job"),
        ("hoodie.metadata.index.drop", "column_stats", "set by the job"),
        ("hoodie.write.concurrency.mode", "optimistic_concurrency_control", "needs hoodie.write.lock.provider"),
    ],
)
def test_options_that_would_change_the_table_are_refused(key: str, value: str, reason: str) -> None:
    """The error names the option and why it cannot be."""
    with pytest.raises(InvalidSettingError, match=reason) as raised:
        table_write_options(config("files"), extra={key: value})
    assert key in str(raised.value)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        (OCC, True),
        ({**OCC, "hoodie.write.concurrency.mode": "SINGLE_WRITER"}, False),
        ({"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}, False),
        ({**OCC, "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"}, False),
    ],
)
def test_a_lock_provider_needs_a_mode_and_reaches_other_processes(options: dict[str, str], expected: bool) -> None:  # noqa: FBT001
    """Both settings are needed, and a lock within one process keeps nobody else out."""
    assert expected == has_lock_provider(options)


def timeline() -> tuple[Timeline, list[PendingPlan]]:
    clustering = instant(FIRST, Action.REPLACE_COMMIT, State.REQUESTED)
    pending = [
        instant("20261129000000000", Action.COMMIT, State.COMPLETED),
        clustering,
        instant(SECOND, Action.REPLACE_COMMIT, State.INFLIGHT),
        instant("20261130020000000", Action.CLUSTERING, State.REQUESTED),
        instant("20261130030000000", Action.COMPACTION, State.INFLIGHT),
        instant("20261130040000000", Action.CLEAN, State.INFLIGHT),
        instant("20261130050000000", Action.DELTA_COMMIT, State.REQUESTED),
    ]
    plan = PendingPlan(instant=clustering, kind=PlanKind.CLUSTERING, groups=(), output_file_count=1)
    return Timeline.of(pending), [plan]


def test_pending_writes_are_live_writers() -> None:
    """Pending plans, cleans and completed instants are none; an overwrite that looks like a clustering is one."""
    expected = [SECOND, "20261130050000000"]
    assert expected == [one.requested_time for one in live_writers(*timeline())]


def test_known_writers_can_be_ignored() -> None:
    """What the caller knows about is left out."""
    found = live_writers(*timeline(), ignore={SECOND})
    assert ["20261130050000000"] == [one.requested_time for one in found]


def test_a_live_writer_without_lock_provider_is_in_the_way() -> None:
    """The error names the instants and says what to do."""
    with pytest.raises(PendingActionError, match=f"{SECOND} .replacecommit, inflight.*Try again when it is done"):
        check_no_live_writer(*timeline(), options={})


def test_a_live_writer_with_lock_provider_is_not() -> None:
    """A lock provider keeps the two apart."""
    check_no_live_writer(*timeline(), options=OCC)


def test_a_quiet_table_has_no_live_writer() -> None:
    """Nothing pending, nothing in the way."""
    check_no_live_writer(Timeline(instants=()), [], options={})


@pytest.mark.parametrize("action", [Action.RESTORE, Action.ROLLBACK, Action.INDEXING])
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_pending_rollback_restore_or_index_build_is_in_the_way(action: Action, state: State) -> None:
    """They change files or indexes too; the error names the instant."""
    pending = Timeline.of([instant(FIRST, action, state)])
    with pytest.raises(PendingActionError, match=f"{FIRST} .{action}, {state.name.lower()}"):
        check_no_live_writer(pending, [], options={})
    check_no_live_writer(pending, [], options={}, ignore={FIRST})


@pytest.mark.parametrize("action", [Action.RESTORE, Action.INDEXING])
def test_no_lock_provider_lets_a_job_write_beside_a_restore_or_an_index_build(action: Action) -> None:
    """A restore takes back what is written beside it, and an index build needs writers that know of the index."""
    pending = Timeline.of([instant(FIRST, action, State.INFLIGHT)])
    with pytest.raises(PendingActionError, match="nothing may be written beside"):
        check_no_live_writer(pending, [], options=OCC)


def test_a_lock_provider_keeps_a_job_and_a_rollback_apart() -> None:
    """A rollback is one of many writers."""
    check_no_live_writer(Timeline.of([instant(FIRST, Action.ROLLBACK, State.INFLIGHT)]), [], options=OCC)


def test_completed_rollbacks_restores_and_index_builds_are_not_in_the_way() -> None:
    """What is done is done."""
    actions = (Action.RESTORE, Action.ROLLBACK, Action.INDEXING)
    check_no_live_writer(Timeline.of(instant(FIRST, one, State.COMPLETED) for one in actions), [], options={})


@pytest.mark.parametrize("options", [{}, OCC])
def test_an_index_that_is_being_built_is_in_the_way(options: dict[str, str]) -> None:
    """The table's properties name the metadata partitions; so does the error."""
    building = config("files", inflight="record_index, column_stats")
    with pytest.raises(PendingActionError, match="metadata partitions column_stats, record_index are inflight"):
        check_no_live_writer(Timeline(instants=()), [], options=options, config=building)


def test_a_table_whose_indexes_are_complete_may_be_written() -> None:
    """A blank list of inflight partitions is none."""
    check_no_live_writer(Timeline(instants=()), [], options={}, config=config("files", "column_stats"))
