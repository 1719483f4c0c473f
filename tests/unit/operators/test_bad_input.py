"""What a user gets wrong: each is refused in words that say what, which and what next, and leaves the table alone.

Nothing below starts Spark, and the folder of the table is compared byte for byte.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.core.engines import rest_client
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.cluster import HudiClusterOperator
from airflow_hudi_maint.operators.clustering import HudiExecuteClusteringOperator, HudiScheduleClusteringOperator
from airflow_hudi_maint.operators.compaction import HudiExecuteCompactionOperator, HudiScheduleCompactionOperator
from airflow_hudi_maint.operators.job import HudiJobOperator
from airflow_hudi_maint.operators.resolve import HudiResolvePendingOperator
from airflow_hudi_maint.sensors.pending import HudiPendingPlanSensor
from tests.airflow.fakes import context
from tests.unit.core.engines.rest_server import RestServer, running_rest_server
from tests.unit.core.maintenance.fake_engine import FakeEngine
from tests.unit.core.maintenance.fake_hudi import DAYS, FakeHudi, rows, three_days_of_rows
from tests.unit.core.storage.builders import TableBuilder, at

SIZES = {"target_file_bytes": 1024**2, "small_file_bytes": 64 * 1024, "max_group_bytes": 2 * 1024**2}
CLUSTERED, OVERWRITTEN = at(20), at(21)
DOCUMENTS = ".airflow_hudi_maint"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> TableBuilder:
    """A clustering and an overwrite have completed, and a plan of ours is pending for the first day."""
    table = three_days_of_rows(str(tmp_path_factory.mktemp("bad") / "trips"))
    hudi = FakeHudi(table)
    hudi.schedule(CLUSTERED, DAYS[2:])
    hudi.execute(CLUSTERED)
    replaced = {DAYS[2]: [f"{DAYS[2]}-{CLUSTERED}-c"]}
    table.commit(OVERWRITTEN, {DAYS[2]: [("new-0", rows(99))]}, replaced=replaced, operation="INSERT_OVERWRITE")
    _run(HudiScheduleClusteringOperator, table, sort_columns="trip_id", partitions=DAYS[:1], scheduler="native")
    return table


@pytest.fixture(scope="module")
def pending(table: TableBuilder) -> str:
    (plan,) = table.open().timeline().pending
    return plan.requested_time


def _run(cls: type[Any], table: TableBuilder, *, engine: FakeEngine | None = None, **arguments: Any) -> Any:
    """Run a task on a fake engine; sizes are given unless a file of settings is."""

    class Faked(cls):  # type: ignore[misc]
        def make_engine(self, hook: HudiHook) -> Any:
            super().make_engine(hook)
            return engine or pytest.fail("Spark was started")

    schedules = cls in (HudiScheduleClusteringOperator, HudiClusterOperator) and "settings_file" not in arguments
    given = {**(SIZES if schedules else {}), "hudi_conn_id": None, "base_path": table.base_path, **arguments}
    return Faked(task_id="step", **given).execute(context())


def _files(table: TableBuilder, *, documents: bool = True) -> dict[str, bytes]:
    """All files of the table's folder; our own documents, such as plans to look at, may be left out."""
    files = (path for path in Path(table.base_path).rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files if documents or DOCUMENTS not in path.parts}


def _refused(table: TableBuilder, cls: type[Any], arguments: dict[str, Any], words: str) -> None:
    before = _files(table)
    with pytest.raises(AirflowFailException, match=words):
        _run(cls, table, **arguments)
    assert before == _files(table)


SCHEDULING = [
    ("strategy", "largets", r"strategy='largets' is unknown; known are size_based, .* the import path of a class"),
    ("strategy", "no_such_package.Mine", "cannot be imported: No module named 'no_such_package'"),
    ("strategy", "decimal.Decimal", "is no strategy of clustering: it lacks needs_history, .* derive it from"),
    ("strategy", "decimal.getcontext", "strategy='decimal.getcontext' is no class: module decimal has"),
    ("strategy", 5, "strategy=5 is no text"),
    ("strategy_options", {"lookback": 2}, "strategy size_based has no option 'lookback'; it takes none"),
    ("strategy_options", "[1]", "strategy_options is no JSON object but list"),
    ("strategy_options", "{", r"strategy_options is no JSON \(.*\): '\{'"),
    ("sort_columns", ["faer"], "has no column 'faer'; did you mean 'fare'"),
    ("sort_columns", ["fare", "fare"], "sort_columns=fare, fare names a column twice; name it once"),
    ("sort_columns", [3], "sort_columns holds 3; expected non-empty texts"),
    ("partitions", ["day=2026-11-09"], "no partition 'day=2026-11-09' .*; partitions look like 'day=2026-11-01'"),
    ("partitions", ["day=*"], r"no partition 'day=\*'"),
    ("partitions", [], "partitions is an empty list; leave it out to mean every partition"),
    ("partitions", "None", "partitions='None' is what a template makes of nothing; see where its value went"),
    ("target_file_bytes", "1 GB", "target_file_bytes='1 GB' is no whole number; sizes are in bytes, without a unit"),
    ("target_file_bytes", 1.5, "target_file_bytes=1.5 is no whole number"),
    ("target_file_bytes", True, "target_file_bytes=True is no whole number"),
    ("target_file_bytes", -1, "target_file_bytes=-1 is too small; expected at least 1"),
    ("target_file_bytes", 10**30, "target_file_bytes=10+ is too large; expected at most 9223372036854775807"),
    ("target_file_bytes", 1024, "is not above small_file_bytes=65536: .* raise the target or lower the small-file"),
    ("small_file_bytes", "64k", "small_file_bytes='64k' is no whole number; sizes are in bytes"),
    ("max_group_bytes", 1024, "max_group_bytes=1024 is below target_file_bytes=1048576: .*; raise the group size"),
    ("max_groups", 0, "max_groups=0 is too small; expected at least 1"),
    ("min_input_files", "few", "min_input_files='few' is no whole number"),
    ("layout", "spiral", "layout='spiral' is unknown; known are linear, zorder, hilbert"),
    ("layout", "zorder", "layout=zorder needs sort_columns; name the columns that queries filter on"),
    ("execution_strategy", "fast", "execution_strategy='fast' is unknown; known are sort_and_size"),
    ("execution_strategy", "single_file_sort", "execution_strategy=single_file_sort needs sort_columns"),
    ("scheduler", "both", "scheduler='both' is unknown; expected auto, hudi, native"),
    ("plan_only", "maybe", "plan_only='maybe' is neither true nor false"),
]
EVERY_JOB = [
    ("base_path", "/nowhere/trips", "no directory /nowhere/trips; give the base path of a Hudi table"),
    ("enabled", "maybe", "enabled='maybe' is neither true nor false"),
    ("skip_when_idle", "maybe", "skip_when_idle='maybe' is neither true nor false"),
    ("job_timeout", "soon", "job_timeout='soon' is no duration; write seconds or a timedelta"),
    ("job_timeout", -1, "job_timeout=-1 is no duration; expected 0 seconds or more"),
    ("deferrable", "perhaps", "deferrable='perhaps' is neither true nor false"),
    ("poll_interval", "often", "poll_interval='often' is no duration; write seconds or a timedelta"),
]
JOBS = (
    HudiScheduleClusteringOperator,
    HudiExecuteClusteringOperator,
    HudiClusterOperator,
    HudiScheduleCompactionOperator,
    HudiExecuteCompactionOperator,
    HudiResolvePendingOperator,
)


def _ids(cases: list[Any]) -> list[str]:
    return [f"{name}={value!r}"[:60] for name, value, _ in cases]


@pytest.mark.parametrize("cls", [HudiScheduleClusteringOperator, HudiClusterOperator])
@pytest.mark.parametrize(("name", "value", "words"), SCHEDULING, ids=_ids(SCHEDULING))
def test_a_wrong_setting_of_a_plan(table: TableBuilder, cls: type[Any], name: str, value: Any, words: str) -> None:
    """Whether one task does both or two do."""
    _refused(table, cls, {"scheduler": "hudi", name: value}, words)


@pytest.mark.parametrize("cls", JOBS)
@pytest.mark.parametrize(("name", "value", "words"), EVERY_JOB, ids=_ids(EVERY_JOB))
def test_a_wrong_setting_of_any_step(table: TableBuilder, cls: type[Any], name: str, value: Any, words: str) -> None:
    """Also one that is needed only after the job: it must not be heard of when the work is done."""
    _refused(table, cls, {name: value}, words)


OPTIONS = [
    ("largest", {"count": "many"}, "strategy largest: count='many' is not a whole number"),
    ("largest", {"cuont": 2}, "strategy largest has no option 'cuont'; it takes count"),
    ("cold", {}, "strategy cold needs the option idle_days"),
    ("cold", {"idle_days": "3 days"}, "strategy cold: idle_days='3 days' is not a number"),
    ("cold", {"idle_days": -3}, "idle_days=-3.* is too small; expected more than 0"),
    ("benefit", {"max_bytes": "10 GB"}, "max_bytes='10 GB' is not a whole number; sizes are in bytes, without a unit"),
    ("recent_days", {"lookback": 0}, "lookback=0 is too small; expected at least 1"),
    ("selected_partitions", {}, "selected_partitions needs partitions, begin, end or regex"),
    ("selected_partitions", {"regex": "("}, r"regex='\(' is no regular expression"),
    ("selected_partitions", {"partitions": "day=2026-11-09"}, "cannot be chosen: 'day=2026-11-09'; there is 'day="),
]


@pytest.mark.parametrize(("strategy", "options", "words"), OPTIONS, ids=_ids(OPTIONS))
def test_a_wrong_option_of_a_strategy(table: TableBuilder, strategy: str, options: Any, words: str) -> None:
    """It is named with its strategy, and units are asked for by name."""
    arguments = {"strategy": strategy, "strategy_options": options}
    _refused(table, HudiScheduleClusteringOperator, arguments, words)


@pytest.mark.parametrize("text", ["def (", "raise RuntimeError('boom')"], ids=["broken", "raising"])
def test_a_strategy_of_yours_that_cannot_be_loaded(
    table: TableBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """Whatever the module raises: a retry would raise it again."""
    name = f"bad_strategy_{len(text)}"
    (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    words = f"strategy='{name}.Mine' cannot be imported: (SyntaxError|RuntimeError: boom)"
    _refused(table, HudiScheduleClusteringOperator, {"strategy": f"{name}.Mine"}, words)


STRATEGY = "hoodie.clustering.plan.strategy"
PROPERTIES = [
    ("unit", f"# sizes\n{STRATEGY}.small.file.limit=300 MB", "line 2: .*limit=300 MB is no whole number .* in bytes"),
    ("slip", f"{STRATEGY}.sort.colums=fare", r"line 1: .*did you mean hoodie.clustering.plan.strategy.sort.columns\?"),
    ("column", f"{STRATEGY}.sort.columns=faer", "has no column 'faer'; did you mean 'fare'"),
    ("twice", f"{STRATEGY}.sort.columns=fare,fare", "line 1: .* is no list of different columns"),
    ("sizes", f"{STRATEGY}.small.file.limit=9\n{STRATEGY}.target.file.max.bytes=8", "is not above small_file_bytes=9"),
    ("layout", "hoodie.layout.optimize.strategy=spiral", "line 1: .* is unknown; known are linear, zorder, hilbert"),
    ("spark", "spark.executor.memory=2g", "no option of Hudi's; Spark's settings belong to the connection"),
    ("table", "hoodie.table.name=other", "is set by the job itself, from the table; leave it out of the file"),
    ("partitions", f"{STRATEGY}.class=org.apache.hudi.Mine", "selects partitions, which the arguments .* do"),
    ("include", "include=other.properties", "names another file, which is not followed"),
    ("escape", "a=\\u12", r"job\.properties"),
]


@pytest.mark.parametrize("cls", [HudiScheduleClusteringOperator, HudiClusterOperator])
@pytest.mark.parametrize(("name", "text", "words"), PROPERTIES, ids=[name for name, _, _ in PROPERTIES])
def test_a_properties_file_with_an_error(
    table: TableBuilder, tmp_path: Path, cls: type[Any], name: str, text: str, words: str
) -> None:
    """File, line, key and value, and what to write instead."""
    file = tmp_path / "job.properties"
    file.write_text(f"{text}\n", encoding="utf-8")
    _refused(table, cls, {"settings_file": str(file)}, words)


def test_a_properties_file_that_is_none(table: TableBuilder, tmp_path: Path) -> None:
    """Not there, a folder, no text."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, words in (
        ("gone", "There is no properties file at .*gone"),
        (".", "is a folder; give the path of a properties file"),
        ("binary", "is no UTF-8 text"),
    ):
        path = str(tmp_path) if name == "." else str(tmp_path / name)
        for cls in (HudiScheduleClusteringOperator, HudiExecuteClusteringOperator, HudiClusterOperator):
            _refused(table, cls, {"settings_file": path}, words)


INSTANTS = [
    (at(50), r"Instant \d+ is no pending clustering of .*: it is not on the active timeline .*Schedule clustering ag"),
    (at(1), r"is no pending clustering of .*: the timeline has \d+ \(commit, completed\)"),
    (OVERWRITTEN, r"is no pending clustering of .*: the timeline has \d+ \(replacecommit, completed\)"),
    (at(0), "it is older than the active timeline, which starts at"),
    ("yesterday", "instants holds 'yesterday', which is no instant; give its time as the timeline has it"),
    ([1.5], "instants holds 1.5"),
    ("{x", "instants is no JSON"),
    ({"outcome": "done"}, "instants is a result without 'instants'; it has outcome"),
    ({"instants": [at(1)], "base_path": "/lake/other"}, "result of a step on /lake/other, and this table is"),
]


@pytest.mark.parametrize(("instants", "words"), INSTANTS, ids=[str(one)[:40] for one, _ in INSTANTS])
def test_an_instant_that_is_no_pending_clustering(table: TableBuilder, instants: Any, words: str) -> None:
    """The message says what it is instead."""
    _refused(table, HudiExecuteClusteringOperator, {"instants": instants}, words)


def test_instants_of_other_steps(table: TableBuilder) -> None:
    """A compaction that is none; what is to be resolved and never was a plan; the result of a step on another table."""
    other = {"instants": [at(1)], "base_path": "/lake/other"}
    for cls, instants, words in (
        (HudiExecuteCompactionOperator, at(50), "no pending compaction of .* it is not on the active timeline"),
        (HudiExecuteCompactionOperator, at(1), r"no pending compaction of .* has \d+ \(commit, completed\)"),
        (HudiExecuteCompactionOperator, other, "result of a step on /lake/other"),
        (HudiResolvePendingOperator, at(1), r"is no clustering or compaction of .* has \d+ \(commit, completed\)"),
        (HudiResolvePendingOperator, OVERWRITTEN, "is no clustering or compaction of .*Name the instant of a pending"),
        (HudiResolvePendingOperator, other, "result of a step on /lake/other"),
        (HudiResolvePendingOperator, "yesterday", "'yesterday', which is no instant"),
    ):
        _refused(table, cls, {"instants": instants}, words)


@pytest.mark.parametrize("cls", [HudiExecuteClusteringOperator, HudiResolvePendingOperator])
def test_an_instant_that_has_completed_is_done(table: TableBuilder, cls: type[Any]) -> None:
    """A second run of what succeeded is a success without Spark, and says that nothing was left to do."""
    before = _files(table, documents=False)
    result = _run(cls, table, instants=CLUSTERED)
    assert ("already-done", [CLUSTERED]) == (result["outcome"], result["instants"])
    assert CLUSTERED in result["message"]
    assert before == _files(table, documents=False)


EXECUTION = [
    (
        "sort_columns",
        "fare",
        "sort_columns=fare contradicts clustering plan .* scheduled with trip_id.* Leave sort",
    ),
    ("layout", "hilbert", "layout=hilbert contradicts clustering plan"),
    ("execution_strategy", "binary_copy", "execution_strategy=binary_copy contradicts clustering plan"),
    ("parallelism", 0, "parallelism=0 is too small; expected at least 1"),
    ("read_parallelism", "all", "read_parallelism='all' is no whole number"),
    ("driver_memory", "lots", "driver_memory='lots' is no amount of memory; write a whole number and k, m, g or t: 4g"),
    ("driver_memory", "4 GB", "driver_memory='4 GB' is no amount of memory"),
    ("driver_memory", 4096, "driver_memory=4096 is no amount of memory"),
    ("options", {"spark.x": 1}, "write option 'spark.x' is no Hudi option: its name has to start with 'hoodie.'"),
    ("options", {"hoodie.x": [1]}, r"options.hoodie.x=\[1\] is no text, number or truth value"),
    ("options", {"hoodie.table.name": "x"}, "write option 'hoodie.table.name' is set by the job itself; leave it out"),
    ("options", {"hoodie.table.version": 6}, "hoodie.table.version=6 contradicts hoodie.write.table.version=9"),
    ("options", {"hoodie.metadata.enable": False}, "hoodie.metadata.enable=false contradicts .*; leave it out"),
    ("options", "x=1", "options is no JSON"),
    ("verify", "some", "verify='some' is unknown; known are auto, full, sample, timeline"),
    ("verify_files", 0, "verify_files=0 is too small"),
    ("verify_keys", "maybe", "verify_keys='maybe' is neither true nor false"),
]


@pytest.mark.parametrize(("name", "value", "words"), EXECUTION, ids=_ids(EXECUTION))
def test_a_wrong_setting_of_an_execution(table: TableBuilder, pending: str, name: str, value: Any, words: str) -> None:
    """The plan stays as it is, for a try with the right one."""
    _refused(table, HudiExecuteClusteringOperator, {"instants": pending, name: value}, words)


OTHERS = [
    (HudiScheduleCompactionOperator, "min_log_files", "x", "min_log_files='x' is no whole number"),
    (HudiScheduleCompactionOperator, "min_log_ratio", "x", "min_log_ratio='x' is no number"),
    (HudiScheduleCompactionOperator, "max_input_bytes", "1 TB", "max_input_bytes='1 TB' is no whole number; sizes are"),
    (HudiResolvePendingOperator, "action", "explode", "action='explode' is unknown; expected finish, roll_back, auto"),
    (HudiResolvePendingOperator, "kinds", "clean", "kinds holds 'clean'; known are clustering, compaction"),
    (
        HudiResolvePendingOperator,
        "older_than",
        "1 day",
        "older_than='1 day' is no duration; write seconds or a time",
    ),
    (HudiResolvePendingOperator, "made_by", "me", "made_by='me' is unknown; expected any or ours"),
    (HudiPendingPlanSensor, "wait_for", "all", "wait_for='all' is unknown; expected none or some"),
    (HudiPendingPlanSensor, "kinds", "clusterings", "kinds holds 'clusterings'; known are clustering"),
    (HudiPendingPlanSensor, "older_than", "1h", "older_than='1h' is no duration; write seconds or a timedelta"),
    (HudiPendingPlanSensor, "partitions", [], "partitions is an empty list; leave it out to mean every partition"),
]


@pytest.mark.parametrize(
    ("cls", "name", "value", "words"), OTHERS, ids=[f"{cls.__name__}-{name}" for cls, name, _, _ in OTHERS]
)
def test_a_wrong_setting_of_compaction_and_of_pending_care(
    table: TableBuilder, cls: type[Any], name: str, value: Any, words: str
) -> None:
    """Each by its name, with what is known."""
    _refused(table, cls, {name: value}, words)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    """A cluster that takes nothing yet, and the connections to it."""
    monkeypatch.setattr(rest_client, "_PAUSE_SECONDS", 0.0)
    with running_rest_server() as server:
        server.routes["GET /json/"] = {"status": "ALIVE", "activeapps": []}
        server.routes["GET /batches"] = {"sessions": []}
        _connect(monkeypatch, server.url)
        yield server


def _connect(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    spark = {"conn_type": "spark", "host": "spark://m", "port": 7077, "extra": {"deploy-mode": "cluster"}}
    extras = {
        "spark_submit": {
            "spark_conn_id": "bad_spark",
            "rest_url": url,
            "ui_url": url,
            "bundle": "local:/opt/hudi-spark3.5-bundle_2.12-1.2.0.jar",
        },
        "livy": {"livy_conn_id": "bad_livy"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_BAD_SPARK", json.dumps(spark))
    monkeypatch.setenv("AIRFLOW_CONN_BAD_LIVY", json.dumps({"conn_type": "livy", "host": url}))
    for engine, extra in extras.items():
        hudi = {"conn_type": "hudi", "extra": {"engine": engine, **extra}}
        monkeypatch.setenv(f"AIRFLOW_CONN_BAD_{engine.upper()}_HUDI", json.dumps(hudi))


def _on_cluster(cls: type[HudiJobOperator], table: TableBuilder, *, engine: str) -> Any:
    sizes = {**SIZES, "scheduler": "hudi"} if cls is HudiClusterOperator else {}
    operator = cls(task_id="step", hudi_conn_id=f"bad_{engine}_hudi", base_path=table.base_path, **sizes)
    return operator.execute(context())


def _takes(server: RestServer) -> None:
    server.routes["POST /v1/submissions/create"] = {"success": True, "submissionId": "driver-1"}
    server.routes["GET /v1/submissions/status/driver-1"] = {"success": False}
    server.routes["POST /batches"] = {"id": 7, "state": "starting"}


def _rejects(server: RestServer) -> None:
    server.routes["POST /v1/submissions/create"] = {"success": False, "message": "Driver requires 9999g"}
    server.routes["POST /batches"] = (400, {"msg": "Driver requires 9999g"})


def _goes_down(server: RestServer) -> None:
    server.routes.clear()
    server.routes |= dict.fromkeys(
        ("GET /json/", "GET /batches", "POST /batches", "POST /v1/submissions/create"), (503, {"msg": "no leader"})
    )


@pytest.mark.parametrize("engine", ["spark_submit", "livy"])
@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (_goes_down, r"127\.0\.0\.1.*no leader"),
        (_rejects, "Driver requires 9999g"),
        (_takes, r"ended \(lost: .*\), but the timeline of .* shows no completion(.|\n)*try again"),
    ],
    ids=["down", "rejects", "loses"],
)
def test_a_cluster_that_does_not_do_its_part(
    table: TableBuilder, cluster: RestServer, engine: str, happens: Callable[[RestServer], None], words: str
) -> None:
    """An error with the cluster's own words, which uses the task's retries; the plan that was there is still there."""
    happens(cluster)
    before = _files(table, documents=False)
    with pytest.raises(EngineError, match=words):
        _on_cluster(HudiExecuteClusteringOperator, table, engine=engine)
    assert before == _files(table, documents=False)


@pytest.mark.parametrize("engine", ["spark_submit", "livy"])
def test_a_cluster_that_is_not_there(table: TableBuilder, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """The address is in the message, and what to look at."""
    monkeypatch.setattr(rest_client, "_PAUSE_SECONDS", 0.0)
    _connect(monkeypatch, "http://127.0.0.1:9")
    before = _files(table, documents=False)
    for cls in (HudiExecuteClusteringOperator, HudiClusterOperator):
        with pytest.raises(EngineError, match=r"127\.0\.0\.1:9.*refused.*Is it running, and is this its address"):
            _on_cluster(cls, table, engine=engine)
    assert before == _files(table, documents=False)
