"""Planning a clustering by a strategy, on real files: what is gathered, what is refused, and what is warned of."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.errors import BundleError, HudiMaintError
from airflow_hudi_maint.core.maintenance import Workspace
from airflow_hudi_maint.core.maintenance.clustering_facts import partition_facts
from airflow_hudi_maint.core.model.instant import instant_moment
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.planning.clustering_candidates import PartitionFacts
from airflow_hudi_maint.core.planning.clustering_strategies import SizeBased
from tests.golden.golden import truth, unpack
from tests.unit.core.storage.builders import TableBuilder, at, parquet

NOW = datetime(2026, 12, 1, tzinfo=UTC)
SIZES = {"target_file_bytes": 1024**2, "small_file_bytes": 64 * 1024, "max_group_bytes": 2 * 1024**2}
SMALL = ClusteringSettings(**SIZES)
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:{}"
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "trips",
        "fields": [
            {"name": "city", "type": ["null", "string"], "default": None},
            {
                "name": "place",
                "type": {"type": "record", "name": "place", "fields": [{"name": "lat", "type": "double"}]},
            },
            {"name": "tags", "type": {"type": "map", "values": "string"}},
            {"name": "days", "type": {"type": "array", "items": "string"}},
        ],
    }
)


@dataclass(frozen=True, kw_only=True)
class Anything(SizeBased):
    """A strategy that takes an option."""

    what: object


def open_table(path: Path, **settings: object) -> Workspace:
    return maintenance.open_workspace(str(path), timeline_zone="UTC", **settings)  # type: ignore[arg-type]


def plan(workspace: Workspace, settings: ClusteringSettings = SMALL, **asked: object) -> ClusteringPlan:
    return maintenance.plan_clustering(workspace, now=NOW, settings=settings, **asked).plan  # type: ignore[arg-type]


def sorting(*columns: str, **more: object) -> ClusteringSettings:
    return ClusteringSettings(**SIZES, sort_columns=columns, **more)  # type: ignore[arg-type]


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    """A table of one day and two files, in which half of the cities are null."""
    builder = TableBuilder(base_path=str(tmp_path / "trips"))
    rows = parquet([at(1)] * 4, extra={"city": ["Rome", None, "Oslo", None]})
    builder.commit(at(1), {"day=1": [("a-0", rows), ("b-0", rows)]}, schema=SCHEMA)
    return builder


@pytest.mark.parametrize("name", ["v6_mor_clustered", "v8_cow_clustered", "v9_cow_clustered"])
def test_facts_tell_changes_of_data_from_clusterings(name: str, tmp_path: Path) -> None:
    """The clustered day changed before it was clustered; the others were never clustered; a dropped one has no file."""
    workspace = open_table(unpack(name, tmp_path))
    upsert, clustering, _drop = (instant_moment(one["requested"], zone=UTC) for one in truth(name)["timeline"][3:6])
    timeline = workspace.table.timeline()
    view = workspace.table.view(timeline)
    slices = {path: view.merged_slices(path) for path in view.partition_paths}

    facts = partition_facts(workspace, slices, SMALL, timeline=timeline, now=NOW)

    first, dropped, third = (facts[f"day=2026-11-0{day}"] for day in (1, 2, 3))
    assert (upsert, clustering, clustering) == (first.last_change, first.last_clustered, first.waiting_since)
    assert (upsert, None) == (third.last_change, third.last_clustered)
    assert (0, None) == (dropped.file_count, dropped.last_change)


def test_a_cold_partition_is_one_that_nobody_wrote_although_it_was_clustered(tmp_path: Path) -> None:
    """Day 5 was written last: with a limit between, the others are cold and it is not."""
    path = unpack("v9_cow_clustered", tmp_path)
    last = instant_moment(truth("v9_cow_clustered")["timeline"][-1]["requested"], zone=UTC)
    idle = ((NOW - last).total_seconds() + 1) / 86_400

    reasons = {
        one.partition_path: one.reason
        for one in plan(open_table(path), strategy="cold", strategy_options={"idle_days": idle}).entries
    }

    assert [["day=2026-11-05"]] == [[day for day, why in reasons.items() if "less than idle_days" in why]]


def test_a_plan_notes_its_strategy_and_comes_back_from_its_document(tmp_path: Path) -> None:
    """The document has the strategy and its options as they were given, and the estimate of bytes."""
    workspace = open_table(unpack("v9_cow_plain", tmp_path))
    planned = maintenance.plan_clustering(
        workspace, now=NOW, settings=SMALL, strategy="recent_days", strategy_options={"lookback": "2"}
    )
    document = json.loads(Path(planned.path).read_text())
    assert ("recent_days", {"lookback": "2"}) == (document["strategy"], document["strategy_options"])
    assert document["summary"]["output_bytes"] == document["summary"]["input_bytes"] > 0
    assert planned.plan == ClusteringPlan.from_json(document, name="plan.json")


def test_options_that_are_no_json_are_refused(tmp_path: Path) -> None:
    """They could not be kept with the plan."""
    workspace = open_table(unpack("v9_cow_plain", tmp_path))
    with pytest.raises(HudiMaintError, match="cannot be written as JSON"):
        plan(
            workspace,
            strategy=f"{__name__}.Anything",
            strategy_options={"what": object()},
        )


def test_nulls_in_sort_columns_are_counted_in_the_footers_of_the_chosen_files(table: TableBuilder) -> None:
    """Half of the rows have no city: the plan warns, with figures."""
    found = plan(open_table(Path(table.base_path)), sorting("city"))
    assert found.warnings == (
        "Sort column 'city' is null in 4 of 8 rows (50 %) of 2 files looked at, of 2: those rows come first, together",
    )


def test_a_column_that_files_do_not_have_yet_is_null_in_them(table: TableBuilder) -> None:
    """A file that is older than the column counts with all of its rows."""
    table.commit(at(2), {"day=1": [("c-0", parquet([at(2)] * 2))]}, schema=SCHEMA)
    (warning,) = plan(open_table(Path(table.base_path)), sorting("city")).warnings
    assert "6 of 10 rows (60 %)" in warning


def test_no_more_than_32_footers_are_read(table: TableBuilder) -> None:
    """Of many files some are looked at, from one end to the other."""
    rows = parquet([at(2)] * 2, extra={"city": [None, "Rome"]})
    table.commit(
        at(2), {f"day={day}": [(f"{day}{n}-0", rows) for n in range(10)] for day in range(2, 9)}, schema=SCHEMA
    )
    workspace = open_table(Path(table.base_path))
    (warning,) = plan(workspace, sorting("city")).warnings
    assert "32 files looked at, of 72" in warning


def test_a_file_without_a_footer_does_not_stop_the_plan(table: TableBuilder) -> None:
    """Nulls are then not counted, which the plan says."""
    table.commit(at(2), {"day=2": [("c-0", 500), ("d-0", 500)]}, schema=SCHEMA)
    (warning,) = plan(open_table(Path(table.base_path)), sorting("city")).warnings
    assert warning.startswith("Nulls in the sort columns could not be counted:")


@pytest.mark.parametrize(
    ("column", "layout", "message"),
    [
        ("_hoodie_record_key", Layout.LINEAR, "is a column of Hudi's own"),
        ("place.lat", Layout.LINEAR, "is a field of a record"),
        ("tags", Layout.LINEAR, "of type map, which layout=linear cannot order"),
        ("days", Layout.ZORDER, "of type array, which layout=zorder cannot order"),
        ("town", Layout.LINEAR, "has no column 'town'"),
    ],
)
def test_columns_that_hudi_does_not_sort_by_are_refused(
    table: TableBuilder, column: str, layout: Layout, message: str
) -> None:
    """Nested and meta columns, and types without an order, are errors before anything is planned."""
    with pytest.raises(HudiMaintError, match=message):
        plan(open_table(Path(table.base_path)), sorting(column, layout=layout))


def test_binary_copy_needs_a_bundle_that_has_it(table: TableBuilder) -> None:
    """1.0 has no such class, 1.1 has."""
    settings = ClusteringSettings(**SIZES, execution_strategy=ExecutionStrategy.BINARY_COPY)
    path = Path(table.base_path)
    with pytest.raises(BundleError, match=r"is in Hudi from 1\.1\.0 on, the bundle is of 1\.0\.2"):
        plan(open_table(path, bundle=BUNDLE.format("1.0.2")), settings)
    assert plan(open_table(path, bundle=BUNDLE.format("1.1.1")), settings).chosen


def test_binary_copy_of_a_merge_on_read_table_is_warned_of(tmp_path: Path) -> None:
    """Hudi falls back there without a word in the timeline."""
    settings = ClusteringSettings(**SIZES, execution_strategy=ExecutionStrategy.BINARY_COPY)
    (warning,) = plan(open_table(unpack("v9_mor_plain", tmp_path)), settings).warnings
    assert "copies files of copy-on-write tables only" in warning


@pytest.mark.parametrize(("version", "keeps"), [("1.0.2", True), ("1.1.1", True), ("1.2.0", False)])
def test_groups_are_packed_as_the_bundle_packs(table: TableBuilder, version: str, keeps: bool) -> None:  # noqa: FBT001
    """Hudi packs otherwise from 1.2 on."""
    found = plan(open_table(Path(table.base_path), bundle=BUNDLE.format(version)))
    assert found.settings.keeps_lone_groups is keeps


def request_clustering(table: TableBuilder, instant: str, *, columns: str, done: bool = False) -> None:
    """Put a clustering of the first day on the timeline, sorted by some columns."""
    slices = [
        {
            "dataFilePath": f"/x/{name}_0-1-2_{at(1)}.parquet",
            "fileId": name,
            "partitionPath": "day=1",
            "deltaFilePaths": [],
        }
        for name in ("a-0", "b-0")
    ]
    parameters = {"hoodie.clustering.plan.strategy.sort.columns": columns}
    clustering = {
        "inputGroups": [{"slices": slices, "numOutputFileGroups": 2}],
        "strategy": {"strategyClassName": "x", "strategyParams": parameters},
    }
    table.pending(instant, "clustering", {"operationType": "CLUSTER", "clusteringPlan": clustering})
    if done:
        rows = parquet([at(1)] * 4, extra={"city": ["Rome"] * 4})
        table.commit(
            instant,
            {"day=1": [("c-0", rows), ("d-0", rows)]},
            replaced={"day=1": ["a-0", "b-0"]},
            operation="CLUSTER",
            schema=SCHEMA,
        )


def test_an_older_plan_at_which_archival_stops_is_named(table: TableBuilder) -> None:
    """Twenty writes since a plan that nobody executed: the plan says so; nineteen are no reason yet."""
    request_clustering(table, at(2), columns="city")
    for second in range(3, 22):
        table.commit(at(second), {"day=2": [(f"{second}-0", 100)]}, schema=SCHEMA)
    workspace = open_table(Path(table.base_path))
    assert plan(workspace).warnings == ()
    table.commit(at(22), {"day=2": [("22-0", 100)]}, schema=SCHEMA)
    (warning,) = plan(workspace).warnings
    assert warning.startswith(f"The clustering plan {at(2)}, pending for 13 h 59 min, holds archival back: 20 writes")


def test_single_file_sort_comes_to_an_end(table: TableBuilder) -> None:
    """What was sorted by the same columns since its last change is left alone; by other columns it is sorted again."""
    settings = sorting("city", execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT)
    workspace = open_table(Path(table.base_path))
    assert ("day=1",) == tuple(entry.partition_path for entry in plan(workspace, settings).chosen)
    request_clustering(table, at(5), columns="city", done=True)
    first = plan(workspace, settings).entries[0]
    assert first.reason.startswith("sorted on 2026-11-30 10:00, and nothing was written since")
    assert plan(workspace, sorting("city", "days", execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT)).chosen


def test_partition_facts_need_no_history() -> None:
    """What a listing tells is enough for strategies that go by names and sizes."""
    facts = PartitionFacts.of("day=1", [], settings=SMALL)
    assert (0, None, False) == (facts.total_bytes, facts.waiting_since, facts.is_sorted)
