"""The test's side of a writer process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_hudi_maint.core.engines.bundle import resolve_bundle
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.engines.pyspark_install import find_pyspark
from airflow_hudi_maint.core.engines.spark_settings import properties_text

SCRIPT = Path(__file__).with_name("writer_process.py")
BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12"


class HudiWriter:
    """A pipeline of the user's that writes with one release of Hudi."""

    def __init__(
        self, hudi_version: str, *, packages: Sequence[str] = (), settings: Mapping[str, str] | None = None
    ) -> None:
        """Start Spark with the bundle of this release, more jars by their coordinates, and more settings.

        The settings reach Spark by a file: they may hold credentials.
        """
        self.hudi_version = hudi_version
        java, pyspark = find_java(), find_pyspark(sys.executable)
        wanted = (f"{BUNDLE}:{hudi_version}", *packages)
        jars = [str(resolve_bundle(one, java=java, pyspark=pyspark)) for one in wanted]
        self._scratch = tempfile.TemporaryDirectory(prefix="hudi-writer-")
        properties = Path(self._scratch.name) / "spark.properties"
        properties.touch(mode=0o600)
        properties.write_text(properties_text(settings or {}))
        submit = f"--properties-file {properties} pyspark-shell"
        self._process = subprocess.Popen(
            [sys.executable, str(SCRIPT), ":".join(jars)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._scratch.name,
            env={
                **os.environ,
                "JAVA_HOME": str(java.home),
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_SUBMIT_ARGS": submit,
            },
            text=True,
            start_new_session=True,
        )
        self._answer()

    @property
    def process_group(self) -> int:
        """The group of the pipeline's processes, Java's among them."""
        return self._process.pid

    def close(self) -> None:
        """End Spark."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout:
            self._process.stdout.close()
        self._scratch.cleanup()

    def write(self, path: Path | str, rows: list[list[Any]], *, operation: str, options: dict[str, str]) -> None:
        """Write rows in one commit by any operation, with any options."""
        self._ask("write", path=str(path), rows=rows, operation=operation, options=options)

    def insert(self, path: Path | str, rows: list[list[Any]], **options: str) -> None:
        """Insert rows in one commit: always into new file groups."""
        self.write(path, rows, operation="insert", options=_dotted(options))

    def upsert(self, path: Path | str, rows: list[list[Any]], **options: str) -> None:
        """Upsert rows in one commit."""
        self.write(path, rows, operation="upsert", options=_dotted(options))

    def insert_overwrite(self, path: Path | str, rows: list[list[Any]], **options: str) -> None:
        """Replace the partitions that the rows are in."""
        self.write(path, rows, operation="insert_overwrite", options=_dotted(options))

    def counts(self, path: Path | str) -> dict[str, int]:
        """Rows by partition path, as Spark reads the table."""
        return self._ask("counts", path=str(path))  # type: ignore[no-any-return]

    def rows(self, path: Path | str) -> list[list[Any]]:
        """All rows, in order of id."""
        return self._ask("rows", path=str(path))  # type: ignore[no-any-return]

    def sql(self, statement: str) -> list[dict[str, Any]]:
        """Run one statement."""
        return self._ask("sql", statement=statement)  # type: ignore[no-any-return]

    def clean(self, path: Path, *, retain_commits: int) -> list[dict[str, Any]]:
        """Run Hudi's cleaner."""
        return self._ask("clean", path=str(path), retain_commits=retain_commits)  # type: ignore[no-any-return]

    def java_load(self, texts: list[str]) -> list[dict[str, str] | None]:
        """What ``java.util.Properties`` reads in each text; None where it refuses."""
        return self._ask("java_load", texts=texts)  # type: ignore[no-any-return]

    def java_store(self, values: list[dict[str, str]]) -> list[str]:
        """What ``java.util.Properties`` writes for each."""
        return self._ask("java_store", values=values)  # type: ignore[no-any-return]

    def _ask(self, what: str, **request: Any) -> Any:
        if self._process.stdin is None:
            msg = "the writer process has no standard input"
            raise RuntimeError(msg)
        self._process.stdin.write(json.dumps({"do": what, **request}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        lines = iter(self._process.stdout or ())
        # The JVM prints warnings of its own to the same place.
        line = next((one for one in lines if one.startswith("{")), None)
        if line is None:
            msg = f"the writer process of Hudi {self.hudi_version} ended"
            raise RuntimeError(msg)
        answer = json.loads(line)
        if not answer["ok"]:
            raise RuntimeError(answer["error"])
        return answer["result"]


def _dotted(options: dict[str, str]) -> dict[str, str]:
    """Hudi's keys as keyword arguments: ``hoodie__datasource__write__table__type``."""
    return {key.replace("__", "."): value for key, value in options.items()}
