"""Requested clustering plans as they are written: the same record that Hudi writes, once, and taken away again."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pytest
from fastavro.schema import to_parsing_canonical_form

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.core.model.commit import PlannedSlice
from airflow_hudi_maint.core.model.file_slice import LogFile
from airflow_hudi_maint.core.model.plan import ExecutionStrategy
from airflow_hudi_maint.core.model.rewrite_group import PlannedGroup, PlannedInput
from airflow_hudi_maint.core.storage.clustering_plan import PlanFile, RequestedClustering
from airflow_hudi_maint.core.storage.clustering_plan_schema import requested_replace_schema
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.golden import golden_names, unpack
from tests.unit.core.storage.builders import TableBuilder, at

SORT_AND_SIZE = ExecutionStrategy.SORT_AND_SIZE.class_name
TRUTH: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[3] / "golden" / "requested_plans.json").read_text(encoding="utf-8")
)
DAY = "day=2026-11-01"
GROUP = PlannedGroup(
    partition_path=DAY,
    inputs=(
        PlannedInput(file_id="a", base_file_name="a_0-1-2_1.parquet", base_bytes=3 * 1024**2, log_file_names=()),
        PlannedInput(
            file_id="b", base_file_name="", base_bytes=0, log_file_names=(".b_1.log.1", ".b_1.log.2"), log_bytes=7
        ),
    ),
    output_file_count=2,
)


def _named(paths: list[str]) -> list[str]:
    return [path.rpartition("/")[2] for path in paths]


def _recorded_groups(record: Mapping[str, Any], files: Mapping[str, int]) -> Iterator[PlannedGroup]:
    """The groups of a plan of Hudi's as ours has them: log files in the order of our slices."""
    for group in record["clusteringPlan"]["inputGroups"]:
        inputs = []
        for one in group["slices"]:
            base = one["dataFilePath"].rpartition("/")[2]
            parsed = [LogFile.parse(name, size_bytes=files[name]) for name in _named(one["deltaFilePaths"])]
            logs = sorted(filter(None, parsed), key=lambda log: (log.instant, log.version, log.write_token))
            inputs.append(
                PlannedInput(
                    file_id=one["fileId"],
                    base_file_name=base,
                    base_bytes=files[base],
                    log_file_names=tuple(log.name for log in logs),
                    log_bytes=sum(log.bytes for log in logs),
                )
            )
        yield PlannedGroup(
            partition_path=group["slices"][0]["partitionPath"],
            inputs=tuple(inputs),
            output_file_count=group["numOutputFileGroups"],
        )


@pytest.mark.parametrize("release", sorted(TRUTH))
def test_a_plan_equals_that_of_hudi_field_by_field(release: str) -> None:
    """Log files, sort columns and a curve: paths, their order, figures, parameters and class are those of the release;
    the layout is in neither."""
    truth = TRUTH[release]
    ours = RequestedClustering(
        groups=tuple(_recorded_groups(truth["record"], truth["files"])),
        engine_path="/lake/trips",
        strategy_class=SORT_AND_SIZE,
        parameters={"hoodie.clustering.plan.strategy.sort.columns": "value,id"},
    )

    assert truth["record"] == ours.record(table_version=truth["table_version"])
    assert any(len(one["deltaFilePaths"]) == 2 for one in truth["record"]["clusteringPlan"]["inputGroups"][0]["slices"])


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("_pending")])
def test_a_plan_from_our_slices_equals_the_pending_one_of_a_golden_table(name: str, tmp_path: Path) -> None:
    """For the groups that Hudi chose, what our view of the table makes of them is what Hudi's plan says."""
    table = HudiTable.open(str(unpack(name, tmp_path)))
    timeline = table.timeline()
    view = table.view(timeline)
    slices = {(path, one.file_id): one for path in view.partition_paths for one in view.merged_slices(path)}
    plans = [plan for plan in view.plans if plan.strategy_class]
    assert plans
    for plan in plans:
        data = table.storage.read_bytes(
            f"{table.config.timeline_folder}/{plan.instant.file_name.partition('.')[0]}.{plan.instant.action}.requested"
        )
        (record,) = fastavro.reader(io.BytesIO(data))
        assert isinstance(record, dict)
        path = record["clusteringPlan"]["inputGroups"][0]["slices"][0]["dataFilePath"]
        engine_path = path.partition("/day=")[0]
        groups = tuple(
            PlannedGroup(
                partition_path=group[0].partition_path,
                inputs=tuple(PlannedInput.of(slices[one.partition_path, one.file_id]) for one in group),
                output_file_count=count,
            )
            for group, count in zip(plan.groups, plan.group_output_file_counts, strict=True)
        )
        ours = RequestedClustering(groups=groups, engine_path=engine_path, strategy_class=plan.strategy_class)
        version = table.config.table_version
        assert record == ours.record(table_version=version)

        written = fastavro.reader(io.BytesIO(data)).writer_schema
        assert written is not None
        assert to_parsing_canonical_form(written) == to_parsing_canonical_form(
            requested_replace_schema(table_version=version)
        )


def test_figures_are_whole_mebibytes_and_a_missing_base_file_counts_as_a_full_one() -> None:
    """Read: base and log files. Written: base files, and 120 MiB for a slice of log files only."""
    record = RequestedClustering(groups=(GROUP,), engine_path="/lake/t", strategy_class=SORT_AND_SIZE).record(
        table_version=9
    )
    (group,) = record["clusteringPlan"]["inputGroups"]

    expected = {
        "TOTAL_IO_READ_MB": 3.0,
        "TOTAL_IO_WRITE_MB": 123.0,
        "TOTAL_IO_MB": 126.0,
        "TOTAL_LOG_FILES_SIZE": 7.0,
        "TOTAL_LOG_FILES": 2.0,
    }
    assert expected == group["metrics"]


@pytest.mark.parametrize("root", ["s3a://lake/trips", "/lake/trips", "hdfs://nn:8020/lake/trips"])
@pytest.mark.parametrize("partition", [DAY, ""])
def test_files_are_named_by_the_path_that_the_engine_reads(root: str, partition: str) -> None:
    """With the scheme of the engine, and without a folder where the table has no partitions."""
    group = PlannedGroup(partition_path=partition, inputs=GROUP.inputs, output_file_count=1)
    record = RequestedClustering(groups=(group,), engine_path=root, strategy_class=SORT_AND_SIZE).record(
        table_version=8
    )
    first, second = record["clusteringPlan"]["inputGroups"][0]["slices"]
    folder = f"{root}/{partition}" if partition else root

    assert (f"{folder}/a_0-1-2_1.parquet", []) == (first["dataFilePath"], first["deltaFilePaths"])
    assert ("", [f"{folder}/.b_1.log.2", f"{folder}/.b_1.log.1"]) == (second["dataFilePath"], second["deltaFilePaths"])


@pytest.fixture(params=[(6, "file"), (8, "file"), (9, "file"), (9, "memory")], ids=str)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> HudiTable:
    version, where = request.param
    root = str(tmp_path / "trips") if where == "file" else f"memory://{tmp_path.name}/trips"
    builder = TableBuilder(base_path=root, version=version)
    builder.commit(at(1), {DAY: [("a", 100)]})
    return builder.open()


def test_a_written_plan_is_read_back_as_it_was_meant(table: HudiTable) -> None:
    """By version in the right folder under the right action, with class, parameters and who made it."""
    requested = RequestedClustering(
        groups=(GROUP,),
        engine_path="/lake/trips",
        strategy_class=SORT_AND_SIZE,
        parameters={"k": "a,b"},
        extra_metadata={"airflow_hudi_maint.dag_id": "nightly"},
    )
    version = table.config.table_version
    file = PlanFile(table=table, requested_time=at(9))
    data = requested.encode(table_version=version)

    assert file.create(data)
    assert [requested.record(table_version=version)] == [*fastavro.reader(io.BytesIO(data))]

    assert {6: ".hoodie/20261130100009000.replacecommit.requested"}.get(
        version, ".hoodie/timeline/20261130100009000.clustering.requested"
    ) == file.path
    (plan,) = table.pending_plans(table.timeline())
    assert plan == file.pending(requested, timeline=table.timeline())
    assert (at(9), SORT_AND_SIZE, 2) == (plan.instant.requested_time, plan.strategy_class, plan.output_file_count)
    assert ({"k": "a,b"}, {"airflow_hudi_maint.dag_id": "nightly"}) == (plan.parameters, plan.extra_metadata)
    assert plan.inputs[1] == PlannedSlice(
        partition_path=DAY, file_id="b", log_file_names=frozenset({".b_1.log.1", ".b_1.log.2"})
    )


def test_a_plan_is_never_written_over_another(table: HudiTable) -> None:
    """The second one with the same instant is refused, and what stands there is the first; nothing else is left."""
    file = PlanFile(table=table, requested_time=at(9))
    names = set(table.storage.names(table.config.timeline_folder))

    assert file.create(b"first")
    assert not file.create(b"second")
    assert b"first" == file.content()
    assert names | {file.path.rpartition("/")[2]} == set(table.storage.names(table.config.timeline_folder))


def test_an_answer_that_was_lost_is_no_second_writer(table: HudiTable) -> None:
    """Storage wrote the file and said nothing: asked again, what lies there is ours."""
    file = PlanFile(table=table, requested_time=at(9))
    file.create(b"ours")

    assert file.create(b"ours")


def test_only_our_own_plan_is_withdrawn_and_only_before_it_is_executed(table: HudiTable) -> None:
    """Another's file of the same instant stays; an inflight one is said; what is gone already is fine."""
    file = PlanFile(table=table, requested_time=at(9))
    file.create(b"another's")
    file.withdraw(table.timeline(), data=b"ours")
    assert b"another's" == file.content()

    inflight = file.path.replace(".requested", ".inflight")
    table.storage.write_atomic(inflight, b"")
    with pytest.raises(PendingActionError, match=f"{at(9)} cannot be withdrawn: it is inflight"):
        file.withdraw(table.timeline(), data=b"another's")
    table.storage.delete(inflight)

    file.withdraw(table.timeline(), data=b"another's")
    file.withdraw(table.timeline(), data=b"another's")
    assert None is file.content()


def test_a_plan_that_was_executed_at_once_is_said_by_name(table: HudiTable) -> None:
    """Somebody's service took it up between the two looks; or it was rolled back."""
    requested = RequestedClustering(groups=(GROUP,), engine_path="/lake/trips", strategy_class=SORT_AND_SIZE)
    file = PlanFile(table=table, requested_time=at(9))

    with pytest.raises(PendingActionError, match=f"{at(9)} was written, and is no longer pending"):
        file.pending(requested, timeline=table.timeline())
