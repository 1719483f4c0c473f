"""YARN for tests: a resource manager and a node manager, as Hadoop's own classes start them.

Hadoop publishes them with all that they need in one jar, and the rest is in pyspark's jars. There half of the classes
that write REST answers look for annotations under another name than the other half has them: the answers would have
another shape than any real resource manager's. Those few classes are put right, in a jar that comes first.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from airflow_hudi_maint.core.engines.bundle import resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
from tests.standalone_cluster import free_ports

_JARS = (
    "org.apache.hadoop:hadoop-client-minicluster:3.3.4",
    # The resource manager has certificates made with them; pyspark's jars, which hold Hadoop's client, lack them.
    "org.bouncycastle:bcprov-jdk15on:1.68",
    "org.bouncycastle:bcpkix-jdk15on:1.68",
)
_RESOURCE_MANAGER = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
_NODE_MANAGER = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
_WRITERS = "org/apache/hadoop/shaded/com/sun/jersey/core/"
_RENAMED, _TRUE_NAME = b"org/apache/hadoop/shaded/javax/xml/bind", b"javax/xml/bind"
_CONSTANT_BYTES = {
    3: 4,
    4: 4,
    5: 8,
    6: 8,
    7: 2,
    8: 2,
    9: 4,
    10: 4,
    11: 4,
    12: 4,
    15: 3,
    16: 2,
    17: 4,
    18: 4,
    19: 2,
    20: 2,
}
"""Bytes of each kind of constant in a class file, texts apart, by its tag (chapter 4.4 of the JVM's specification)."""

_QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1",
}
_START_SECONDS = 120.0
_END_SECONDS = 30.0
_HEAP = "-Xmx192m"


@dataclass(frozen=True, kw_only=True)
class Yarn:
    """A running cluster of one node."""

    rest_url: str
    folder: Path

    @property
    def conf_dir(self) -> Path:
        """Where its configuration lies, for HADOOP_CONF_DIR."""
        return self.folder / "conf"

    def spark_conf(self) -> dict[str, str]:
        """Settings of small jobs that upload nothing large: each node has Spark's jars where this machine has them."""
        home = find_pyspark(sys.executable).home
        return {
            "spark.yarn.jars": f"local:{home}/jars/*",
            "spark.yarn.stagingDir": str(self.folder / "staging"),
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
        }

    def applications(self) -> list[dict[str, Any]]:
        """All applications that the resource manager remembers, the oldest first."""
        with urllib.request.urlopen(f"{self.rest_url}/ws/v1/cluster/apps", timeout=10) as answer:  # noqa: S310 ours
            found = (json.load(answer)["apps"] or {}).get("app", [])
        return sorted(found, key=lambda one: int(one["id"].rpartition("_")[2]))


@contextmanager
def running_yarn(folder: Path, **more: str) -> Iterator[Yarn]:
    """Start both managers, with ``more`` in their configuration, and end them with all that they started."""
    properties = _properties(folder) | more
    yarn = Yarn(rest_url=f"http://{properties['yarn.resourcemanager.webapp.address']}", folder=folder)
    yarn.conf_dir.mkdir()
    (yarn.conf_dir / "yarn-site.xml").write_text(_xml(properties), encoding="utf-8")
    (yarn.conf_dir / "core-site.xml").write_text(_xml({}), encoding="utf-8")
    (yarn.conf_dir / "capacity-scheduler.xml").write_text(_xml(_QUEUES), encoding="utf-8")
    class_path = _class_path(folder)
    processes = []
    try:
        processes = [_start(folder, name, class_path=class_path) for name in (_RESOURCE_MANAGER, _NODE_MANAGER)]
        _wait(yarn)
        yield yarn
    finally:
        for process in reversed(processes):  # The node first: it ends its containers.
            _end(process)


def _properties(folder: Path) -> dict[str, str]:
    names = ("", ".scheduler", ".resource-tracker", ".admin", ".webapp")
    *ports, localizer, page = free_ports(len(names) + 2)
    return {
        **{f"yarn.resourcemanager{name}.address": f"127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)},
        "yarn.scheduler.minimum-allocation-mb": "128",
        "yarn.nodemanager.address": "127.0.0.1:0",
        "yarn.nodemanager.localizer.address": f"127.0.0.1:{localizer}",
        "yarn.nodemanager.webapp.address": f"127.0.0.1:{page}",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.resource.memory-mb": "4096",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.env-whitelist": "JAVA_HOME,JDK_JAVA_OPTIONS",
        "yarn.application.classpath": "",
    }


def _xml(properties: dict[str, str]) -> str:
    entries = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in properties.items()
    )
    return f"<configuration>{''.join(entries)}</configuration>"


def _class_path(folder: Path) -> str:
    java, pyspark = find_java(), find_pyspark(sys.executable)
    jars = [str(resolve_bundle(one, java=java, pyspark=pyspark)) for one in _JARS]
    repaired = folder / "writers.jar"
    (runtime,) = (pyspark.home / "jars").glob("hadoop-client-runtime-*.jar")
    with zipfile.ZipFile(runtime) as source, zipfile.ZipFile(repaired, "w") as target:
        for name in source.namelist():
            if name.startswith(_WRITERS) and name.endswith(".class"):
                target.writestr(name, _repaired(source.read(name)))
    return ":".join((str(folder / "conf"), str(repaired), *jars, f"{pyspark.home}/jars/*"))


def _repaired(code: bytes) -> bytes:
    """Give the texts among the constants of a class file the true name."""
    count, at = struct.unpack_from(">H", code, 8)[0], 10
    written, number = bytearray(code[:at]), 1
    while number < count:
        tag = code[at]
        if tag == 1:
            length = struct.unpack_from(">H", code, at + 1)[0]
            text = code[at + 3 : at + 3 + length].replace(_RENAMED, _TRUE_NAME)
            written += struct.pack(">BH", tag, len(text)) + text
            at += 3 + length
        else:
            written += code[at : at + 1 + _CONSTANT_BYTES[tag]]
            at += 1 + _CONSTANT_BYTES[tag]
        number += 2 if tag in (5, 6) else 1  # a long and a double count twice
    return bytes(written + code[at:])


def _start(folder: Path, main_class: str, *, class_path: str) -> subprocess.Popen[bytes]:
    java = find_java()
    with (folder / f"{main_class.rpartition('.')[2]}.log").open("wb") as output:
        return subprocess.Popen(
            [
                *(str(java.home / "bin" / "java"), _HEAP, "--add-opens=java.base/java.lang=ALL-UNNAMED"),
                *("-cp", class_path, main_class),
            ],
            env={**os.environ, "JAVA_HOME": str(java.home)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait(yarn: Yarn) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{yarn.rest_url}/ws/v1/cluster/metrics", timeout=10) as answer:  # noqa: S310
                if json.load(answer)["clusterMetrics"]["activeNodes"]:
                    return
        except (OSError, ValueError, urllib.error.URLError):
            pass
        if time.monotonic() > deadline:
            raise TimeoutError(f"No YARN within {_START_SECONDS:.0f} s; see {yarn.folder}")
        time.sleep(0.3)
