"""Runs a job script for real, with a Spark and a Hudi that only print what they are called with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import airflow_hudi_maint
from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.job import JobKind, JobReport, JobRequest, JobTotals

JOBS = Path(airflow_hudi_maint.__file__).parent / "jobs"
FAKE_SPARK = """
    # Enough of pyspark for the job scripts: each call is a line on standard output.
    import json, os

    FAKE = json.loads(os.environ["FAKE_HUDI"])

    class Row:
        def asDict(self, recursive):
            return {"timestamp": "20261130120000000", "state": "COMPLETED"}

    class Frame:
        columns = ["_hoodie_commit_time", "id", "day"]
        dtypes = [("id", "string"), ("day", "string")]
        def __init__(self, session): self.sparkSession = session; self.read_as_of = False
        def _other(self, **changes):
            other = Frame(self.sparkSession)
            other.__dict__.update({**self.__dict__, **changes})
            return other
        def collect(self): return [Row()]
        def select(self, *names): print("select", *names); return self
        def limit(self, rows): print("limit", rows); return self
        def where(self, condition): print("where", condition); return self
        def join(self, other, on, how): print("join", *on, how); return self
        def head(self, rows): return FAKE.get("head", [])
        def groupBy(self, name): return self._other(collect=self._sums)
        def agg(self, *columns): print("agg", *columns); return self
        def _sums(self): return FAKE["then" if self.read_as_of else "now"]
        def format(self, name): return self
        def option(self, name, value): print("option", name, value); return self._other(read_as_of=True)
        def options(self, **options): print("options", json.dumps(options)); return self
        def mode(self, name): return self
        def load(self, path): return self
        def save(self, path):
            print("save", path)
            if FAKE.get("save_fails"):
                raise RuntimeError(FAKE["save_fails"])
        @property
        def write(self): return self

    class Settings(dict):
        def set(self, name, value): print("set", name, value); self[name] = value
        def unset(self, name): print("unset", name); del self[name]

    class Instant:
        def __init__(self, time, action): self.time, self.action = time, action
        def getAction(self): return self.action
        def toString(self): return f"[==>{self.time}__{self.action}__INFLIGHT]"

    def plain(it): return it.time if isinstance(it, Instant) else "java"

    class Plan:
        # One pending clustering plan: its instant, and one slice for each partition that it holds.
        def __init__(self, time, held): self.time, self.held = time, held
        def getLeft(self): return Instant(self.time, "clustering")
        def getRight(self): return self
        def getInputGroups(self): return [self]
        def getSlices(self): return [Slice(one) for one in self.held]

    class Slice:
        def __init__(self, path): self.path = path
        def getPartitionPath(self): return self.path

    class Iterated:
        def __init__(self, items): self.items = list(items)
        def iterator(self): return self
        def hasNext(self): return bool(self.items)
        def next(self): return self.items.pop(0)

    class Java:
        # Any class, object or method of the JVM; a few methods answer, the others give another such thing.
        def __init__(self, name="", given=()): self.name, self.given = name, given
        def __getattr__(self, name): return Java(name, self.given)
        def __call__(self, *given):
            if self.name in ("withPath", "forTable", "withProps", "clean", "rollback", "close"):
                print(self.name, *(json.dumps(one, default=plain) for one in given))
            if self.name == "createNewInstantTime": return "20261130130000000"
            if self.name == "isPresent": return bool(FAKE.get("begun"))
            if self.name == "getRollbackInstant": return Instant(FAKE["begun"], "rollback")
            if self.name == "clean" and not FAKE.get("cleaned"): return None
            if self.name == "getTotalFilesDeleted": return FAKE["cleaned"]
            if self.name == "getEarliestCommitToRetain": return "20261130110000000"
            if self.name == "getInstants": return [Instant(*one) for one in FAKE.get("pending", [])]
            if self.name == "getAllPendingClusteringPlans":
                listings = FAKE.get("plans", [{}])
                found = listings.pop(0) if len(listings) > 1 else listings[0]
                return Iterated(Plan(time, held) for time, held in found.items())
            if self.name == "exists": return given[0].given[0] in FAKE.get("files", {})
            if self.name == "open": return Java("", given[0].given)
            if self.name == "toByteArray": return FAKE["files"][given[0].given[0]].encode()
            return Java("", given or self.given)

    class Tasks:
        # An RDD whose tasks run here, one after the other.
        def __init__(self, items): self.items = items
        def flatMap(self, act): self.act = act; return self
        def collect(self): return [row for item in self.items for row in self.act(item)]

    class SparkContext:
        _jvm = Java()
        _jsc = Java()
        def addPyFile(self, path): import sys; print("addPyFile", path); sys.path.insert(1, path)
        def setJobDescription(self, text): print("describe", text)
        def parallelize(self, items, slices): print("parallelize", len(items), slices); return Tasks(items)

    class SparkSession:
        version = "3.5.9"
        conf = Settings()
        sparkContext = SparkContext()
        @property
        def read(self): return Frame(self)
        def sql(self, text):
            print("sql", text)
            if "explode" in text:
                raise RuntimeError("boom") from ValueError("cause")
            return Frame(self)
        def stop(self): print("stop")

    class Builder:
        def getOrCreate(self): return SparkSession()

    SparkSession.builder = Builder()
"""
FAKE_TASK = """
    # What a task is told of itself.
    class TaskContext:
        @staticmethod
        def get(): return TaskContext()
        def taskAttemptId(self): return 7
"""
FAKE_FUNCTIONS = """
    # Columns that are the text of what was asked for.
    class Column(str):
        def cast(self, name): return self
        def isin(self, values): return Column(f"{self} in {values}")
        def __eq__(self, other): return Column(f"({self} = {other})")
        def __and__(self, other): return Column(f"({self} and {other})")
        def __or__(self, other): return Column(f"({self} or {other})")
        __hash__ = str.__hash__

    def __getattr__(name):
        return lambda *given: Column(given[0] if name == "col" else f"{name}({', '.join(given)})")
"""
NOTHING: Mapping[str, Json] = {}


class Ran:
    """What a script did: its report, its exit code, the calls to Spark."""

    def __init__(
        self, request: JobRequest | dict[str, Json], *, tmp_path: Path, script: str, hudi: Mapping[str, Json] = NOTHING
    ) -> None:
        """Run a script; ``hudi`` is what the fake answers: see its text."""
        package = tmp_path / "fake" / "pyspark" / "sql"
        package.mkdir(parents=True)
        (package.parent / "__init__.py").write_text(textwrap.dedent(FAKE_TASK), encoding="utf-8")
        (package / "__init__.py").write_text(textwrap.dedent(FAKE_SPARK), encoding="utf-8")
        (package / "functions.py").write_text(textwrap.dedent(FAKE_FUNCTIONS), encoding="utf-8")
        document = request.to_json() if isinstance(request, JobRequest) else request
        (tmp_path / "request.json").write_text(json.dumps(document), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(JOBS / f"{script}.py"), str(tmp_path / "request.json"), str(tmp_path / "report.json")],
            env={**os.environ, "PYTHONPATH": str(tmp_path / "fake"), "FAKE_HUDI": json.dumps(hudi)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (tmp_path / "report.json").is_file(), done.stderr
        self.report = JobReport.from_json(json.loads((tmp_path / "report.json").read_text()))
        self.code = done.returncode
        self.calls = done.stdout.splitlines()

    def options(self) -> dict[str, str]:
        """The options of the only write."""
        (options,) = self.writes()
        return options

    def writes(self) -> list[dict[str, str]]:
        """The options of each write, in order."""
        return [json.loads(line) for line in self.said("options")]

    def said(self, call: str) -> list[str]:
        """What each call of this name was given."""
        return [line.removeprefix(call).strip() for line in self.calls if line.split(" ")[0] == call]


def request(kind: JobKind, **arguments: Json) -> JobRequest:
    """A request for a table whose path needs quoting."""
    return JobRequest(
        kind=kind,
        base_path="/lake/o'trips",
        table_name="trips",
        write_options={"hoodie.write.table.version": "6"},
        arguments=arguments,
        totals=JobTotals(files=12, bytes=94_000_000),
    )


def writing(kind: JobKind, **arguments: Json) -> JobRequest:
    """A request of a job that writes to a merge-on-read table of two levels."""
    about_the_table: dict[str, Json] = {
        "record_key_fields": ["id"],
        "ordering_fields": [],
        "partition_fields": ["day", "hour"],
        "hive_style": True,
        "url_encode": False,
        "table_type": "MERGE_ON_READ",
        "keygenerator": None,
    }
    return request(kind, **{**about_the_table, **arguments})


def delete(*partitions: str, **arguments: Json) -> JobRequest:
    """A request to drop partitions."""
    return writing(JobKind.DELETE_PARTITIONS, partitions=list(partitions), **arguments)
