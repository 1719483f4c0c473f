"""A Java, a bundle and job scripts that are none, so that the engine runs in earnest without a JVM."""

from __future__ import annotations

import os
import textwrap
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines import local, process_group
from airflow_hudi_maint.core.engines.local import LocalSparkEngine
from airflow_hudi_maint.core.engines.local_handle import LocalHandle
from airflow_hudi_maint.core.model.job import JobHandle, JobKind, JobRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = Path(local.__file__).parents[2] / "jobs"


def running(pid: int) -> bool:
    """Tell whether a process lives; one that ended and waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat[stat.rindex(")") + 2] != "Z"


class FakeJobs:
    """An engine whose job script is a text of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.jobs_dir = root / "jobs"
        self.work_dir = root / "work"
        self.jobs_dir.mkdir()
        self.work_dir.mkdir()
        self.bundle = root / "hudi-spark3.5-bundle_2.12-1.2.0.jar"
        self.bundle.touch()
        self.java_home = fake_java(root / "java", version='openjdk version "17.0.9"')
        self.handles: list[JobHandle] = []

    def engine(self, **spark_conf: str) -> LocalSparkEngine:
        return LocalSparkEngine(
            bundle=str(self.bundle),
            java_home=str(self.java_home),
            jobs_dir=self.jobs_dir,
            work_dir=self.work_dir,
            spark_conf=spark_conf,
        )

    def s3_engine(self, *, storage_options: dict[str, object]) -> LocalSparkEngine:
        """An engine for tables on S3, with a connector that is none."""
        connector = self.root / "hadoop-aws-3.3.4.jar"
        connector.touch()
        return replace(self.engine(), packages=[str(connector)], storage_options=storage_options)

    def script(self, text: str) -> None:
        """Make this the body of the job; ``report(document)`` and ``here`` (the work directory) are at hand."""
        head = """
            import json, os, signal, subprocess, sys, time
            from pathlib import Path
            here = Path(sys.argv[2]).parent
            def put(name, document):
                temporary = here / (name + ".new")
                temporary.write_text(json.dumps(document))
                temporary.replace(here / name)
            def report(**more):
                put("report.json", {"version": 1, "ok": True, "rows": [], "seconds": 1.0, **more})
            def progress(**more):
                put("progress.json", {"version": 1, "stage": "", "tasks_done": 0, "tasks_total": 0,
                                      "active_stages": 0, "seconds": 0.0, **more})
        """
        body = textwrap.dedent(head) + textwrap.dedent(text)
        (self.jobs_dir / "delete_partitions.py").write_text(body, encoding="utf-8")

    def submit(self, engine: LocalSparkEngine | None = None) -> JobHandle:
        handle = (engine or self.engine()).submit(request())
        self.handles.append(handle)
        return handle

    def work(self, handle: JobHandle) -> Path:
        return Path(handle.job_id.split(":", 5)[5])

    def end(self) -> None:
        for handle in self.handles:
            job = LocalHandle.read(handle)
            assert job is not None
            process_group.end(job.process, timeout_seconds=1.0)
            with suppress(OSError):
                process_group.forget(job.process)


def fake_java(home: Path, *, version: str) -> Path:
    """Make a ``java`` that says its version and does nothing else."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return home


def request(base_path: str = "/lake/trips") -> JobRequest:
    return JobRequest(
        kind=JobKind.DELETE_PARTITIONS,
        base_path=base_path,
        table_name="trips",
        write_options={"hoodie.write.table.version": "6"},
        arguments={"partitions": ["day=2026-11-01"]},
    )


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[FakeJobs]:
    fake = FakeJobs(tmp_path)
    yield fake
    fake.end()


@pytest.fixture(autouse=True)
def _this_python_has_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let the Python of the tests answer with a pyspark of our own making, whether it has one or not."""
    site = tmp_path / "site"
    (site / "pyspark" / "jars").mkdir(parents=True)
    (site / "pyspark" / "__init__.py").touch()
    metadata = site / "pyspark-3.5.9.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: pyspark\nVersion: 3.5.9\n", encoding="utf-8")
    path = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", f"{site}{os.pathsep}{path}" if path else str(site))
    local.find_pyspark.cache_clear()
    yield
    local.find_pyspark.cache_clear()
