"""Merges whose files are written by one Spark job: what is asked of it, what is believed, and what is left behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import (
    EngineError,
    InvalidSettingError,
    PendingActionError,
    SchemaConflictError,
    VerificationError,
)
from airflow_hudi_maint.core.maintenance import JobControl, SparkMerging, open_merge_workspace, plan_merge
from airflow_hudi_maint.core.maintenance.merge_writers import SparkWriter
from airflow_hudi_maint.core.maintenance.merging import merge_small_files
from airflow_hudi_maint.core.merging.group_tasks import read_order, write_task
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobReport, JobRequest, JobStatus
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.storage.merge_journal import Swap, SwapFile
from airflow_hudi_maint.core.storage.merge_swap import begin
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.plain_files import NOW, SETTINGS, STATE, fill, seen

CSV = {f"day={day}/{name}.csv": f"{day},{name}\n".encode() for day in (1, 2) for name in "ab"}


@dataclass
class TaskEngine(FakeEngine):
    """An engine that runs the tasks of the job here, as Spark does on its executors."""

    before: Callable[[], None] = lambda: None
    after: Callable[[Path], None] = lambda _: None
    orders: list[dict[str, Any]] = field(default_factory=list)

    def submit(self, request: JobRequest) -> JobHandle:
        self.before()
        root, options = str(request.arguments["root"]), dict(request.storage_options)
        order = read_order(root, str(request.arguments["order"]), storage_options=options)
        self.orders.append(order)
        rows = [
            json.loads(json.dumps(row))
            for attempt, task in enumerate(order["tasks"], start=7)
            for row in write_task(
                root,
                task,
                storage_options=options,
                settings=order["settings"],
                run=order["run"],
                attempt=attempt,
            )
        ]
        self.answer = JobReport(ok=True, rows=tuple(rows))
        self.after(Path(root) / STATE / "staging")
        return super().submit(request)


def on(engine: FakeEngine, **job: Any) -> SparkMerging:
    return SparkMerging(engine=lambda: engine, job=JobControl(**job))


def merge(root: Path, engine: FakeEngine, settings: MergeSettings = SETTINGS, **options: Any) -> Any:
    workspace = open_merge_workspace(str(root), log=lambda _: None)
    return merge_small_files(workspace, now=NOW, settings=settings, spark=on(engine), **options).report


def staged(root: Path) -> list[str]:
    folder = root / STATE / "staging"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    fill(tmp_path / "lake", CSV)
    return tmp_path / "lake"


def test_one_job_writes_the_files_of_the_whole_plan(root: Path, tmp_path: Path) -> None:
    """They are those that the embedded engine writes, under the same names; nothing staged is left."""
    engine = TaskEngine()
    report = merge(root, engine)
    assert (4, 2, "byte copy", "spark") == (
        report.files_before,
        report.files_after,
        report.groups[0].method,
        report.engine,
    )
    workspace = fill(tmp_path / "twin", CSV)
    merge_small_files(workspace, now=NOW, settings=SETTINGS)
    assert list(seen(tmp_path / "twin").values()) == list(seen(root).values()) == [b"1,a\n1,b\n", b"2,a\n2,b\n"]
    assert (1, []) == (len(engine.requests), staged(root))


def test_the_request_names_the_order_and_carries_no_file_and_no_secret_in_the_open(root: Path) -> None:
    """A plan of any length fits into the environment of a driver; credentials are in a field of their own."""
    engine = TaskEngine()
    workspace = open_merge_workspace(str(root), storage_options={"auto_mkdir": True, "token": "hunter2"})
    merge_small_files(workspace, now=NOW, settings=SETTINGS, spark=on(engine, application_name="merge-1"))
    (request,) = engine.requests
    assert (JobKind.MERGE_FILES, "merge-1", str(root)) == (request.kind, request.application_name, request.base_path)
    assert {"root", "order", "code"} == set(request.arguments)
    assert request.storage_options == {"auto_mkdir": True, "token": "hunter2"}
    assert "hunter2" not in repr(request)
    assert "hunter2" not in json.dumps(engine.orders)


def test_tiny_groups_share_a_task_and_large_ones_have_their_own(root: Path) -> None:
    engine = TaskEngine()
    merge(root, engine)
    assert [2] == [len(task) for task in engine.orders[0]["tasks"]]
    fill(root, {f"{name}.csv": data for name, data in (("x", b"1,a\n"), ("y", b"1,b\n"))})
    fill(root, {f"day=3/{name}.csv": data for name, data in (("x", b"1,a\n"), ("y", b"1,b\n"))})
    merge(root, engine, MergeSettings(csv_header="no", target_file_bytes=8, small_file_bytes=8))
    assert [1, 1] == [len(task) for task in engine.orders[1]["tasks"]]


def test_a_run_with_nothing_to_write_starts_no_job(root: Path) -> None:
    """Neither a second run, nor the same plan once more."""
    engine = TaskEngine()
    workspace = open_merge_workspace(str(root), log=lambda _: None)
    plan_path = plan_merge(workspace, now=NOW, settings=SETTINGS).path
    for _ in range(2):
        report = merge_small_files(workspace, now=NOW, plan_path=plan_path, spark=on(engine)).report
    assert ("nothing-to-do", 2, 1) == (str(report.outcome), len(report.warnings), len(engine.requests))
    merge(root, engine)
    assert 1 == len(engine.requests)


def test_a_group_whose_input_changes_while_the_job_runs_is_left_alone(root: Path) -> None:
    file = root / "day=1" / "b.csv"
    engine = TaskEngine(after=lambda _: file.write_bytes(b"1,b\n1,c\n") and None)
    report = merge(root, engine)
    assert (2, 1) == (report.files_before, len(report.warnings))
    assert "changed since the plan was made" in report.warnings[0]
    assert b"1,b\n1,c\n" == file.read_bytes()
    assert [] == staged(root)


def test_a_group_that_fails_in_its_task_fails_with_its_own_error_after_the_others_are_done(root: Path) -> None:
    fill(root, {"day=0/a.csv": b"id,n\n1,1\n", "day=0/b.csv": b"id,m\n2,2\n"})
    settings = MergeSettings(csv_header="yes")
    fill(root, {path: b"id,n\n" + data for path, data in CSV.items()})
    with pytest.raises(SchemaConflictError, match="header"):
        merge(root, TaskEngine(), settings)
    assert ["day=0", "day=0", "day=1", "day=2"] == [path.rpartition("/")[0] for path in seen(root)]
    assert [] == staged(root)


def test_a_file_that_vanishes_before_its_task_is_a_plan_that_is_outdated(root: Path) -> None:
    engine = TaskEngine(before=(root / "day=1" / "a.csv").unlink)
    report = merge(root, engine)
    assert 2 == report.files_before
    assert "is gone since the plan was made" in report.warnings[0]


def test_a_directory_that_sparks_machines_do_not_have_is_named(root: Path) -> None:
    """The files are here and were not found there: a disk that is not shared."""

    class Lonely(TaskEngine):
        def submit(self, request: JobRequest) -> JobHandle:
            here = root.with_name("unmounted")
            root.rename(here)
            root.mkdir()
            (here / STATE).rename(root / STATE)
            try:
                return super().submit(request)
            finally:
                (root / STATE).rename(here / STATE)
                root.rmdir()
                here.rename(root)

    with pytest.raises(InvalidSettingError, match="same path on each of them"):
        merge(root, Lonely())
    assert set(CSV) == set(seen(root))


def test_a_file_system_that_sparks_machines_lack_is_named_and_not_tried_again() -> None:
    rows = write_task(
        "nowhere://lake", [{"number": 3}], storage_options={}, settings=SETTINGS.to_json(), run="r", attempt=1
    )
    assert [(3, "InvalidSettingError")] == [(row["number"], row["error_class"]) for row in rows]


def test_what_a_task_wrote_is_verified_here(root: Path) -> None:
    """A file that is not what the report says is not published, and its inputs stay."""

    def corrupt(staging: Path) -> None:
        for file in staging.glob("*.staged"):
            file.write_bytes(file.read_bytes().replace(b"2,a", b"2,x"))

    with pytest.raises(VerificationError, match="other bytes"):
        merge(root, TaskEngine(after=corrupt))
    assert {"day=2/a.csv", "day=2/b.csv"} <= set(seen(root))
    assert [] == staged(root)


def test_only_the_attempt_that_was_reported_is_published(root: Path) -> None:
    """A second attempt of a task, which Spark may start at any time, leaves a file that goes at the end of the run."""

    def attempt_again(staging: Path) -> None:
        for file in list(staging.glob("*-7.staged")):
            file.with_name(file.name.replace("-7.", "-8.")).write_bytes(b"half of i")

    report = merge(root, TaskEngine(after=attempt_again))
    assert [b"1,a\n1,b\n", b"2,a\n2,b\n"] == list(seen(root).values())
    assert ("done", []) == (str(report.outcome), staged(root))


def test_a_job_that_fails_moves_nothing_and_leaves_nothing_staged(root: Path) -> None:
    engine = FakeEngine(answer=JobReport(ok=False, error_class="ValueError", error_message="ValueError: no room"))
    with pytest.raises(EngineError, match=r"no room.*no file was moved"):
        merge(root, engine)
    assert set(CSV) == set(seen(root))
    assert [] == staged(root)


def test_what_a_killed_run_staged_is_tidied_up_by_the_next_one(root: Path) -> None:
    """The worker died with its job: order, code and merged files lie in the staging folder."""

    class Died(BaseException):
        pass

    def die(staging: Path) -> None:
        for file in list(staging.iterdir()):
            file.with_name(f"dead-{file.name}").write_bytes(b"")
        raise Died

    with pytest.raises(Died):
        merge(root, TaskEngine(after=die))
    assert all(name.startswith("dead-") for name in staged(root))
    assert staged(root)
    merge(root, TaskEngine())
    assert [] == staged(root)
    assert [b"1,a\n1,b\n", b"2,a\n2,b\n"] == list(seen(root).values())


def test_what_a_swap_that_broke_off_still_needs_is_kept(root: Path) -> None:
    """The next run publishes it; all else that the run staged goes."""
    workspace = fill(root, {f"{STATE}/staging/r-{name}.staged": b"1,a\n1,b\n" for name in ("0-7", "0-8", "1-9")})
    output = SwapFile(name="m.csv", aside=f"{STATE}/staging/r-0-7.staged", bytes=8)
    begin(workspace.storage, Swap(run="r", number=0, directory="day=1", output=output, inputs=(), trash_days=7))
    SparkWriter(workspace=workspace, settings=SETTINGS, run="r", spark=on(TaskEngine())).close()
    assert ["r-0-7.staged"] == staged(root)


def test_a_retry_ends_the_job_of_the_try_before_it_stages_anything(root: Path) -> None:
    previous = JobHandle(engine="fake", job_id="old")
    killed: list[tuple[str, list[str]]] = []

    class Ending(TaskEngine):
        def kill(self, handle: JobHandle, *, timeout_seconds: float = 30.0) -> None:
            killed.append((handle.job_id, staged(root)))
            self.running = False

    engine, submitted = Ending(running=True), list[JobHandle]()
    workspace = open_merge_workspace(str(root), log=lambda _: None)
    spark = on(engine, previous=previous, on_submitted=submitted.append)
    merge_small_files(workspace, now=NOW, settings=SETTINGS, spark=spark)
    assert [("old", [])] == killed
    assert ["1"] == [handle.job_id for handle in submitted]


def test_a_job_that_cannot_be_seen_from_here_is_waited_for_by_retries(root: Path) -> None:
    class Elsewhere(TaskEngine):
        def status(self, handle: JobHandle) -> JobStatus:
            raise PendingActionError("on another host")

    engine = Elsewhere()
    workspace = open_merge_workspace(str(root), log=lambda _: None)
    with pytest.raises(PendingActionError, match="another host"):
        merge_small_files(
            workspace, now=NOW, settings=SETTINGS, spark=on(engine, previous=JobHandle(engine="fake", job_id="1"))
        )
    assert set(CSV) == set(seen(root))


def test_storage_of_this_process_alone_is_refused_before_anything_is_written() -> None:
    workspace = open_merge_workspace("memory://merge-on-spark/lake", log=lambda _: None)
    for name in "ab":
        workspace.storage.write_atomic(f"{name}.csv", b"1\n")
    with pytest.raises(InvalidSettingError, match="exists in this Python process only"):
        merge_small_files(workspace, now=NOW + timedelta(hours=1), settings=SETTINGS, spark=on(TaskEngine()))
    assert ["a.csv", "b.csv"] == sorted(name for name in workspace.storage.names("") if name.endswith(".csv"))


def test_an_option_that_spark_cannot_be_handed_is_named(root: Path) -> None:
    workspace = open_merge_workspace(str(root), storage_options={"session": object()}, log=lambda _: None)
    with pytest.raises(InvalidSettingError, match=r"storage_options\['session'\] is an object of this process"):
        merge_small_files(workspace, now=NOW, settings=SETTINGS, spark=on(TaskEngine()))
    assert [] == staged(root)
