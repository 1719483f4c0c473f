"""What every job script shares: the request, the Spark session, progress, the report.

The scripts are run by path (``python delete_partitions.py REQUEST REPORT``) or shipped with this file through
``spark-submit --py-files``; both put this module on ``sys.path`` as ``session``. Only the standard library and pyspark may be
imported, and nothing newer than Python 3.8 may be used: the Python of a cluster is not the one of Airflow.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOB_VERSION = 1
PARENT_PID_VARIABLE = "AIRFLOW_HUDI_MAINT_PARENT_PID"
PROGRESS_SECONDS = 2.0
PARENT_POLL_SECONDS = 1.0
STOP_SECONDS = 30.0
MESSAGE_CHARACTERS = 4000


class Request(NamedTuple):
    """The job as it was asked for; ``base_path`` is one that Spark can read."""

    kind: str
    base_path: str
    table_name: str
    write_options: Dict[str, str]
    arguments: Dict[str, Any]
    application_name: str

    def names(self, argument: str) -> List[str]:
        """Return an argument that is a list of texts; an absent one is an empty list."""
        value = self.arguments.get(argument) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ValueError(f"Argument {argument!r} must be a list of texts, not {value!r}")
        return value


Row = Dict[str, Any]
Job = Callable[["SparkSession", Request], List[Row]]


def main(kind: str, job: Job) -> None:
    """Run one job: exit 0 with a report that says ok, or 1 with a report that says why not."""
    if len(sys.argv) != 3:
        sys.exit(f"usage: {os.path.basename(sys.argv[0])} REQUEST.json REPORT.json")
    request_path, report_path = sys.argv[1:]
    spark_holder: List[SparkSession] = []
    _guard_against_orphanhood(spark_holder)
    started = time.monotonic()
    report = _run(kind, job, request_path=request_path, report_path=report_path, spark_holder=spark_holder)
    report["seconds"] = round(time.monotonic() - started, 3)
    write_json(report_path, report)
    _stop(spark_holder)
    # Not sys.exit: a thread of py4j that does not end must not keep the job alive after its report.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0 if report["ok"] else 1)


def read_request(path: str, *, kind: str) -> Request:
    """Read a request and refuse one of another version or for another job."""
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
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
    )


def write_json(path: str, document: Mapping[str, Any]) -> None:
    """Write a whole file or none: readers see the old content until the new one is complete."""
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, default=str)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


@contextmanager
def session_options(spark: SparkSession, options: Mapping[str, str]) -> Iterator[None]:
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
    r"""Quote a text for Spark SQL. A doubled quote would be accepted by CALL and match nothing: Spark's escape is ``\'``."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def call(spark: SparkSession, procedure: str, arguments: Mapping[str, str]) -> List[Row]:
    """Call a Hudi procedure with named text arguments and return its rows."""
    named = ", ".join(f"{name} => {sql_text(value)}" for name, value in arguments.items())
    return rows(spark.sql(f"CALL {procedure}({named})"))


def rows(frame: DataFrame) -> List[Row]:
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


def error_of(error: BaseException) -> Tuple[str, str]:
    """Return the class of an error and its message with the whole chain of causes, the JVM's included."""
    java = getattr(error, "java_exception", None)
    if java is None:
        java = getattr(error, "_origin", None)
    links = _java_links(java) if java is not None else _python_links(error)
    head = links[0][0]
    text = "; caused by ".join(f"{name}: {message}" if message else name for name, message in links)
    return head, text[:MESSAGE_CHARACTERS]


def _java_links(java: Any) -> List[Tuple[str, str]]:
    links = []
    while java is not None and len(links) < 10:
        message = java.getMessage() or ""
        links.append((java.getClass().getName(), message.split("\n\n")[0].strip()))
        java = java.getCause()
    return links


def _python_links(error: Optional[BaseException]) -> List[Tuple[str, str]]:
    links = []
    while error is not None and len(links) < 10:
        links.append((type(error).__name__, str(error)))
        error = error.__cause__
    return links


def _run(kind: str, job: Job, *, request_path: str, report_path: str, spark_holder: List[SparkSession]) -> Row:
    report: Row = {"version": JOB_VERSION, "ok": False, "error_class": None, "error_message": None, "rows": []}
    report.update(seconds=0.0, spark_version="", hudi_version="")
    try:
        request = read_request(request_path, kind=kind)
        spark = open_session(request)
        spark_holder.append(spark)
        report.update(spark_version=spark.version, hudi_version=_hudi_version(spark))
        _write_progress_in_background(spark, os.path.join(os.path.dirname(report_path), "progress.json"))
        report.update(rows=job(spark, request), ok=True)
    # Whatever it is, the report has to say it: the process that reads it has no other way to know.
    except BaseException as error:
        error_class, error_message = error_of(error)
        report.update(error_class=error_class, error_message=error_message)
        print(f"{kind} failed: {error_message}", file=sys.stderr)
    return report


def open_session(request: Request) -> SparkSession:
    """Start Spark as its properties file says.

    Nothing is set on the builder: pyspark would put it on the JVM's command line, where every user of the machine can read it.
    """
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    spark.sparkContext.setJobDescription(f"{request.kind} {request.table_name}")
    return spark


def _hudi_version(spark: SparkSession) -> str:
    try:
        return str(spark.sparkContext._jvm.org.apache.hudi.HoodieVersion.get())  # type: ignore[union-attr]
    except Exception:  # A bundle without that class is no reason to stop.
        return ""


def _write_progress_in_background(spark: SparkSession, path: str) -> None:
    started = time.monotonic()

    def loop() -> None:
        while True:
            try:
                document = {"version": JOB_VERSION, "seconds": round(time.monotonic() - started, 1), **_stages(spark)}
                write_json(path, document)
            except Exception:  # Spark is stopping, or the folder is gone: progress is not worth an error.
                return
            time.sleep(PROGRESS_SECONDS)

    threading.Thread(target=loop, name="progress", daemon=True).start()


def _stages(spark: SparkSession) -> Row:
    tracker = spark.sparkContext.statusTracker()
    infos = [info for info in map(tracker.getStageInfo, tracker.getActiveStageIds()) if info is not None]
    return {
        "stage": ", ".join(dict.fromkeys(str(info.name) for info in infos)),
        "tasks_done": sum(int(info.numCompletedTasks) for info in infos),
        "tasks_total": sum(int(info.numTasks) for info in infos),
        "active_stages": len(infos),
    }


def _stop(spark_holder: List[SparkSession]) -> None:
    """Stop Spark, for a bounded time: after the report is written nothing of value is left to wait for."""
    if not spark_holder:
        return
    stopping = threading.Thread(target=spark_holder[0].stop, daemon=True)
    stopping.start()
    stopping.join(STOP_SECONDS)
    _end_jvm(timeout_seconds=10.0)


def _gateway_process() -> Any:
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
        try:
            process.wait(timeout_seconds)
        except Exception:  # subprocess.TimeoutExpired: go on to the next, harder way.
            continue
        return


def _guard_against_orphanhood(spark_holder: List[SparkSession]) -> None:
    """End this job, and its JVM, when the process that started it is gone.

    A worker that is killed outright cannot clean up, and a second Spark on the same table would then run beside this one.
    Only a local engine sets the variable: elsewhere the cluster owns the job.
    """
    parent = os.environ.get(PARENT_PID_VARIABLE)
    if not parent:
        return

    def loop() -> None:
        while os.getppid() == int(parent):
            time.sleep(PARENT_POLL_SECONDS)
        print(f"The process {parent} that started this job is gone: stopping", file=sys.stderr, flush=True)
        _end_jvm(timeout_seconds=10.0)
        if os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(1)

    threading.Thread(target=loop, name="orphan guard", daemon=True).start()
