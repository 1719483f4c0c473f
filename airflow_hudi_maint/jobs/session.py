"""What every job script shares: the request, the Spark session, progress, the report.

The scripts are run by path (``python delete_partitions.py REQUEST REPORT``) or shipped with this file through
``spark-submit --py-files``; both put this module on ``sys.path`` as ``session``. Only the standard library and pyspark
may be imported, and nothing newer than Python 3.9 may be used: the Python of a cluster is not the one of Airflow.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from airflow_hudi_maint.jobs.remote import Delivery, delivered
else:
    try:
        from remote import delivered
    except ImportError:  # This module alone was taken along, which is enough for a job that gets files.

        def delivered() -> None:
            """Say that nothing was delivered."""


JOB_VERSION = 1
PARENT_PID_VARIABLE = "AIRFLOW_HUDI_MAINT_PARENT_PID"
PROGRESS_SECONDS = 2.0
PARENT_POLL_SECONDS = 1.0
STOP_SECONDS = 30.0
MESSAGE_CHARACTERS = 4000
MOST_CAUSES = 10

_orphaned = threading.Event()


class Request(NamedTuple):
    """The job as it was asked for; ``base_path`` is one that Spark can read."""

    kind: str
    base_path: str
    table_name: str
    write_options: dict[str, str]
    arguments: dict[str, Any]
    application_name: str
    storage_options: dict[str, Any]

    def names(self, argument: str) -> list[str]:
        """Return an argument that is a list of texts; an absent one is an empty list."""
        value = self.arguments.get(argument) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"Argument {argument!r} must be a list of texts, not {value!r}")
        return value


Row = dict[str, Any]
Job = Callable[["SparkSession", Request], "list[Row]"]


def main(kind: str, *, job: Job) -> None:
    """Run one job: exit 0 with a report that says ok, or 1 with a report that says why not."""
    delivery = delivered() or _files_from_arguments()
    spark_holder: list[SparkSession] = []
    delivery.guard()
    started = time.monotonic()
    report = _run(kind, job=job, delivery=delivery, spark_holder=spark_holder)
    if _orphaned.is_set():
        threading.Event().wait()  # The guard is ending this process; what failed since then is its doing.
    report["seconds"] = round(time.monotonic() - started, 3)
    delivery.write("report.json", document=report)
    _stop(spark_holder)
    # Not sys.exit: a thread of py4j that does not end must not keep the job alive after its report.
    sys.stdout.flush()
    sys.stderr.flush()
    code = 0 if report["ok"] else 1
    delivery.end(code=code)
    os._exit(code)


class Files:
    """A request and a report in files of this machine: where the driver runs beside its caller."""

    progress_seconds = PROGRESS_SECONDS

    def __init__(self, request_path: Path, report_path: Path) -> None:
        self._request_path = request_path
        self._folder = report_path.parent
        self._report_path = report_path
        self.settings: dict[str, str] = {}

    def early(self) -> Row | None:
        """Return the request, before a JVM is started for nothing."""
        document: Row = json.loads(self._request_path.read_text(encoding="utf-8"))
        return document

    def open(self, spark: SparkSession) -> Row:  # noqa: ARG002 - the other way of delivery needs it
        """Return the request."""
        return self.early() or {}

    def write(self, name: str, *, document: Mapping[str, Any]) -> None:
        """Write a file whole or not at all."""
        write_json(self._report_path if name == "report.json" else self._folder / name, document=document)

    def end(self, *, code: int) -> None:
        """Do nothing: the JVM was ended with the session."""

    def guard(self) -> None:
        """End this job when its caller is gone."""
        guard_against_orphanhood()


def _files_from_arguments() -> Files:
    script, *paths = sys.argv
    try:
        request_path, report_path = map(Path, paths)
    except ValueError:
        sys.exit(f"usage: {Path(script).name} REQUEST.json REPORT.json")
    return Files(request_path, report_path)


def read_request(document: Mapping[str, Any], *, kind: str) -> Request:
    """Read a request and refuse one of another version or for another job."""
    if document.get("version") != JOB_VERSION:
        raise ValueError(f"Job request of version {document.get('version')!r}; this job reads version {JOB_VERSION}")
    if document.get("kind") != kind:
        raise ValueError(f"Job request for {document.get('kind')!r} was given to the job {kind!r}")
    return Request(
        kind=kind,
        base_path=document["base_path"],
        table_name=document["table_name"],
        write_options=dict(document["write_options"]),
        arguments=dict(document["arguments"]),
        application_name=document["application_name"],
        storage_options=dict(document.get("storage_options") or {}),
    )


def write_json(path: Path, *, document: Mapping[str, Any]) -> None:
    """Write a whole file or none: readers see the old content until the new one is complete."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, default=str)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).replace(path)


@contextmanager
def session_options(spark: SparkSession, *, options: Mapping[str, str]) -> Iterator[None]:
    """Set Hudi options on the session for one SQL call, and take them back.

    ``CALL``'s own ``options`` argument splits on commas and cuts at equal signs; the session takes any value.
    """
    before = {name: spark.conf.get(name, None) for name in options}
    for name, value in options.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


def sql_text(text: str) -> str:
    r"""Quote a text for Spark SQL, whose escape is ``\'``. A doubled quote would be taken by CALL and match nothing."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def call(spark: SparkSession, *, procedure: str, arguments: Mapping[str, str]) -> list[Row]:
    """Call a Hudi procedure with named text arguments and return its rows."""
    named = ", ".join(f"{name} => {sql_text(value)}" for name, value in arguments.items())
    return rows(spark.sql(f"CALL {procedure}({named})"))


def rows(frame: DataFrame) -> list[Row]:
    """Collect a small result as dicts."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def comma_separated(names: Sequence[str], *, what: str) -> str:
    """Join names for an option that Hudi splits on commas; refuse a name that holds one, or a blank one."""
    for name in names:
        if "," in name:
            raise ValueError(f"{what} {name!r} holds a comma, which Hudi's comma separated options cannot carry")
        if not name.strip():
            raise ValueError(f"{what} {name!r} is blank")
    return ",".join(names)


def error_of(error: BaseException) -> tuple[str, str]:
    """Return the class of an error and its message with the whole chain of causes, the JVM's included."""
    java = getattr(error, "java_exception", None)
    if java is None:
        java = getattr(error, "_origin", None)
    links = _java_links(java) if java is not None else _python_links(error)
    head = links[0][0]
    text = "; caused by ".join(f"{name}: {message}" if message else name for name, message in links)
    return head, text[:MESSAGE_CHARACTERS]


def _java_links(java: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - py4j makes its methods up
    links: list[tuple[str, str]] = []
    while java is not None and len(links) < MOST_CAUSES:
        message = java.getMessage() or ""
        links.append((java.getClass().getName(), message.split("\n\n")[0].strip()))
        java = java.getCause()
    return links


def _python_links(error: BaseException | None) -> list[tuple[str, str]]:
    links: list[tuple[str, str]] = []
    while error is not None and len(links) < MOST_CAUSES:
        links.append((type(error).__name__, str(error)))
        error = error.__cause__
    return links


def _run(kind: str, *, job: Job, delivery: Files | Delivery, spark_holder: list[SparkSession]) -> Row:
    report: Row = {"version": JOB_VERSION, "ok": False, "error_class": None, "error_message": None, "rows": []}
    report.update(seconds=0.0, spark_version="", hudi_version="")
    try:
        early = delivery.early()
        if early is not None:
            read_request(early, kind=kind)
        spark = open_session(delivery.settings)
        spark_holder.append(spark)
        request = read_request(delivery.open(spark), kind=kind)
        report.update(spark_version=spark.version, hudi_version=_hudi_version(spark))
        _write_progress_in_background(spark, delivery=delivery)
        report.update(rows=job(spark, request), ok=True)
    # Whatever it is, the report has to say it: the process that reads it has no other way to know.
    except BaseException as error:  # noqa: BLE001
        error_class, error_message = error_of(error)
        report.update(error_class=error_class, error_message=error_message)
        print(f"{kind} failed: {error_message}", file=sys.stderr)
    return report


def open_session(settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark as its properties file says.

    On this machine nothing is set on the builder: pyspark would put it on the JVM's command line, where every user can
    read it. ``settings`` are for a driver whose JVM runs already; they reach it by its gateway.
    """
    from pyspark.sql import SparkSession

    builder = SparkSession.builder
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _hudi_version(spark: SparkSession) -> str:
    try:
        return str(spark.sparkContext._jvm.org.apache.hudi.HoodieVersion.get())  # type: ignore[union-attr]  # noqa: SLF001
    except Exception:  # noqa: BLE001 - a bundle without that class is no reason to stop.
        return ""


def _write_progress_in_background(spark: SparkSession, *, delivery: Files | Delivery) -> None:
    started = time.monotonic()

    def loop() -> None:
        while True:
            try:
                document = {"version": JOB_VERSION, "seconds": round(time.monotonic() - started, 1), **_stages(spark)}
                delivery.write("progress.json", document=document)
            except Exception:  # noqa: BLE001 - Spark is stopping, or the folder is gone.
                return
            time.sleep(delivery.progress_seconds)

    threading.Thread(target=loop, name="progress", daemon=True).start()


def _stages(spark: SparkSession) -> Row:
    """Read the active stages from Spark's status store: unlike statusTracker() it has the words that Hudi sets."""
    found = spark.sparkContext._jsc.sc().statusStore().activeStages()  # noqa: SLF001
    stages = [found.apply(index) for index in range(found.size())]
    texts = [stage.description().get() if stage.description().isDefined() else stage.name() for stage in stages]
    return {
        "stage": ", ".join(dict.fromkeys(texts)),
        "tasks_done": sum(stage.numCompleteTasks() for stage in stages),
        "tasks_total": sum(stage.numTasks() for stage in stages),
        "active_stages": len(stages),
    }


def _stop(spark_holder: list[SparkSession]) -> None:
    """Stop Spark, for a bounded time: after the report is written nothing of value is left to wait for."""
    if not spark_holder:
        return
    stopping = threading.Thread(target=spark_holder[0].stop, daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _end_jvm(timeout_seconds=10.0)


def _gateway_process() -> Any:  # noqa: ANN401 - a subprocess.Popen, which is not imported here
    context = sys.modules.get("pyspark.context") or sys.modules.get("pyspark.core.context")
    gateway = getattr(getattr(context, "SparkContext", None), "_gateway", None)
    return getattr(gateway, "proc", None)


def _end_jvm(*, timeout_seconds: float) -> None:
    """End the JVM that this process started: politely, then not."""
    process = _gateway_process()
    if process is None:
        return
    for end in (process.terminate, process.kill):
        end()
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if process.poll() is not None:
                return
            time.sleep(0.1)


def guard_against_orphanhood() -> None:
    """End this job, and its JVM, when the process that started it is gone.

    A worker that is killed outright cannot clean up, and a second Spark on the same table would then run beside this
    one. Only an engine whose driver runs beside it sets the variable: elsewhere the cluster owns the job. That process
    is the parent of this one, or of the spark-submit that is.
    """
    parent = os.environ.get(PARENT_PID_VARIABLE)
    if not parent:
        return
    by_submit = os.getppid() != int(parent)
    alive = _same_process(int(parent)) if by_submit else (lambda: os.getppid() == int(parent))

    def loop() -> None:
        while alive():
            time.sleep(PARENT_POLL_SECONDS)
        _orphaned.set()
        print(f"The process {parent} that started this job is gone: stopping", file=sys.stderr, flush=True)
        _end_jvm(timeout_seconds=10.0)
        if os.getpgid(0) == (os.getppid() if by_submit else os.getpid()):
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=loop, name="orphan guard", daemon=True).start()


def _same_process(pid: int) -> Callable[[], bool]:
    """Return a question: does the process with this number still live, and is it not a later one?"""

    def started() -> str | None:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        fields = stat[stat.rindex(")") + 2 :].split()
        return None if fields[0] == "Z" else fields[19]

    first = started()
    return lambda: started() == first  # Without /proc there is no telling: the job then runs to its end.
