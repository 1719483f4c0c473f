"""How a job on a cluster gets its request and gives its report, when no local file is shared with the caller.

The request comes in the environment, in a file that the cluster puts beside the driver, or lies as ``request.json`` in
a folder of the table's storage; progress and report go to that folder, by Hadoop's file systems. ``claim.json`` there
names the job that may run now: see :meth:`Delivery.open`.
Standard library only, Python 3.9.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

PAYLOAD_VERSION = 1
PAYLOAD_VARIABLE = "AIRFLOW_HUDI_MAINT_SECRET_JOB_"
ARGUMENT = "delivery="
FILE_ARGUMENT = "delivery-file="
PROGRESS_SECONDS = 10.0
EXIT_SECONDS = 10.0

_kept: list[Delivery] = []


def delivered() -> Delivery | None:
    """Return what was delivered to this driver, the same at each call; None for a job that got paths of files."""
    if not _kept:
        payload = _from_environment() or _from_argument()
        if payload is None:
            return None
        if payload.get("version") != PAYLOAD_VERSION:
            raise ValueError(f"Delivery of version {payload.get('version')!r}; this job reads {PAYLOAD_VERSION}")
        _kept.append(Delivery(payload))
    return _kept[0]


def _from_environment() -> dict[str, Any] | None:
    """Read the payload and take it out of the environment: what this process starts need not know it."""
    parts: list[str] = []
    while True:
        part = os.environ.pop(f"{PAYLOAD_VARIABLE}{len(parts)}", None)
        if part is None:
            break
        parts.append(part)
    return _unpacked("".join(parts)) if parts else None


def _from_argument() -> dict[str, Any] | None:
    arguments = sys.argv[1:]
    if len(arguments) == 1 and arguments[0].startswith(ARGUMENT):
        return _unpacked(arguments[0][len(ARGUMENT) :])
    if len(arguments) == 1 and arguments[0].startswith(FILE_ARGUMENT):
        return _unpacked(Path(arguments[0][len(FILE_ARGUMENT) :]).read_text(encoding="ascii"))
    return None


def _unpacked(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return document


class Delivery:
    """A request from afar, and the folder that its report goes to."""

    progress_seconds = PROGRESS_SECONDS

    def __init__(self, payload: Mapping[str, Any]) -> None:
        self._request: dict[str, Any] | None = payload.get("request")
        self._folder: str = payload["folder"].rstrip("/")
        self._claim: str = payload["claim"]
        self._ends_jvm: bool = bool(payload.get("ends_jvm"))
        self._jvm: Any = None
        self._fs: Any = None
        self.settings: dict[str, str] = dict(payload.get("settings") or {})
        self.kind: str = payload["kind"] if self._request is None else self._request["kind"]

    def early(self) -> dict[str, Any] | None:
        """Return the request if it is here before Spark is."""
        return self._request

    def open(self, spark: SparkSession) -> dict[str, Any]:
        """Reach the folder and return the request.

        The application has its name on the cluster by now. A caller writes its claim before it looks for a live
        application of that name: so either it has seen this one, or this one sees that it was given up.
        """
        self._jvm = spark._jvm  # noqa: SLF001
        path = self._jvm.org.apache.hadoop.fs.Path(self._folder)
        self._fs = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
        claim = self._read("claim.json")
        if claim is None or claim.get("claim") != self._claim:
            self._fs = None  # The folder is another job's.
            raise RuntimeError("This job was given up for lost, and another took its place: it leaves the table alone")
        request = self._request if self._request is not None else self._read("request.json")
        if request is None:
            raise RuntimeError(f"There is no request.json in {self._folder}")
        threading.Thread(target=self._end_when_replaced, name="claim", daemon=True).start()
        return request

    def write(self, name: str, *, document: Mapping[str, Any]) -> None:
        """Write a file of the folder; without Spark there is no way to it, and the driver's log has to do."""
        if self._fs is None:
            print(f"{name} has nowhere to go: {json.dumps(document, default=str)}", file=sys.stderr)
            return
        jvm = self._jvm
        target = jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{name}")
        temporary = jvm.org.apache.hadoop.fs.Path(f"{self._folder}/.{name}.tmp")
        stream = self._fs.create(temporary, True)  # noqa: FBT003 - Java has no names
        try:
            stream.write(bytearray(json.dumps(document, default=str).encode()))
        finally:
            stream.close()
        # Not every file system renames onto a file that is there.
        if not self._fs.rename(temporary, target):
            self._fs.delete(target, False)  # noqa: FBT003
            self._fs.rename(temporary, target)

    def end(self, *, code: int) -> None:
        """End the JVM where nobody else does: a thread of Hudi's that does not end would keep the driver for ever."""
        jvm = self._jvm
        if not self._ends_jvm or jvm is None:
            return
        threading.Thread(target=lambda: jvm.java.lang.System.exit(code), daemon=True).start()
        time.sleep(EXIT_SECONDS)

    def guard(self) -> None:
        """End this process when the driver's JVM, which started it, is gone."""
        parent = os.getppid()

        def loop() -> None:
            while os.getppid() == parent:
                time.sleep(1.0)
            print("The driver is gone: stopping", file=sys.stderr, flush=True)
            os._exit(1)

        threading.Thread(target=loop, name="driver guard", daemon=True).start()

    def _end_when_replaced(self) -> None:
        """End this driver at once when another job has its claim: two must not work on one table.

        A cluster's manager may forget an application that runs, as one that was started anew does, for a while.
        """
        while True:
            time.sleep(self.progress_seconds)
            try:
                claim = self._read("claim.json")
            except Exception:  # noqa: BLE001, S112 - storage hiccups, or Spark is stopping: what counts is what is read.
                continue
            if claim is not None and claim.get("claim") != self._claim:
                break
        self._fs = None  # The folder is the other job's.
        try:
            # By the JVM, which copies what Python prints to the log a moment later, and is not there any more then.
            self._jvm.java.lang.System.err.println("This job was given up for lost, another took its place: stopping")
            self._jvm.java.lang.Runtime.getRuntime().halt(1)
        finally:
            os._exit(1)

    def _read(self, name: str) -> dict[str, Any] | None:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self._folder}/{name}")
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            data = self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)
        finally:
            stream.close()
        document = json.loads(bytes(data))
        return document if isinstance(document, dict) else None
