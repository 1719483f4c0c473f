"""The job that merges plain files: the one that runs this package's code, which reaches it as an archive."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

from airflow_hudi_maint.core.engines.job_code import packed_core
from airflow_hudi_maint.core.merging.group_tasks import order_of
from airflow_hudi_maint.core.model.job import JobKind, JobRequest
from airflow_hudi_maint.core.model.merge_plan import InputFile, MergeGroup
from airflow_hudi_maint.core.model.merge_settings import Codec, FileFormat, FileKind, MergeSettings
from tests.unit.job_scripts import JOBS, Ran

SECRET = "hunter2-of-the-lake"  # noqa: S105


def csv_group(directory: Path, *names: str) -> MergeGroup:
    return MergeGroup(
        directory=directory.name,
        kind=FileKind(format=FileFormat.CSV, codec=Codec.NONE, extension=".csv"),
        inputs=tuple(InputFile(name, (directory / name).stat().st_size, None) for name in names),
        output_name="a-merged.csv",
        detected={"header": "no"},
    )


def asked(root: Path) -> JobRequest:
    """An order of two groups in two tasks, staged as a run stages it; the second group's file is gone."""
    for day in ("day=1", "day=2"):
        (root / day).mkdir(parents=True)
        for name in ("a.csv", "b.csv"):
            (root / day / name).write_text(f"{day},{name}\n")
    groups = {0: csv_group(root / "day=1", "a.csv", "b.csv"), 4: csv_group(root / "day=2", "a.csv", "b.csv")}
    (root / "day=2" / "a.csv").unlink()
    staging = root / ".airflow_hudi_maint" / "staging"
    staging.mkdir(parents=True)
    (staging / "run.order").write_bytes(order_of(groups, settings=MergeSettings(), run="run", tasks=[[0], [4]]))
    (staging / "run.zip").write_bytes(packed_core())
    return JobRequest(
        kind=JobKind.MERGE_FILES,
        base_path=str(root),
        table_name="lake",
        arguments={
            "root": str(root),
            "order": ".airflow_hudi_maint/staging/run.order",
            "code": str(staging / "run.zip"),
        },
        storage_options={"token": SECRET},
    )


def test_each_group_gives_a_row_and_one_that_fails_does_not_fail_the_others(tmp_path: Path) -> None:
    """The staged file is named after the attempt; its rows are in their order; the error has its class."""
    ran = Ran(asked(tmp_path / "lake"), tmp_path=tmp_path, script="merge_files")
    assert (ran.code, ran.report.error_message) == (0, None)
    written, failed = ran.report.rows
    assert (written["number"], written["staged"]) == (0, ".airflow_hudi_maint/staging/run-000000-7.staged")
    assert (tmp_path / "lake" / str(written["staged"])).read_text() == "day=1,a.csv\nday=1,b.csv\n"
    assert (failed["number"], failed["error_class"]) == (4, "FileNotFoundError")
    assert ran.said("parallelize") == ["2 2"]
    assert ran.said("addPyFile") == [str(tmp_path / "lake/.airflow_hudi_maint/staging/run.zip")]


def test_credentials_of_the_storage_are_in_nothing_that_the_job_says(tmp_path: Path) -> None:
    ran = Ran(asked(tmp_path / "lake"), tmp_path=tmp_path, script="merge_files")
    assert SECRET not in json.dumps(ran.report.to_json()) + "".join(ran.calls)


def test_the_archive_is_enough_for_a_task(tmp_path: Path) -> None:
    """With fsspec and pyarrow beside it, and without this package installed, Airflow or Spark."""
    (tmp_path / "core.zip").write_bytes(packed_core())
    script = (
        "import sys\n"
        "class Barred:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('airflow', 'pyspark', 'fastavro', 'pandas', 'jinja2'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Barred())\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "import airflow_hudi_maint.core.merging.group_tasks as tasks\n"
        "from airflow_hudi_maint.core.merging import orc, parquet, text\n"
        "print(tasks.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "core.zip")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(tmp_path / "core.zip"))


def test_the_same_code_makes_the_same_archive() -> None:
    assert packed_core.__wrapped__() == packed_core()
    assert len(packed_core()) < 600_000


def test_no_other_job_imports_this_package_and_this_one_only_where_it_runs() -> None:
    """At the top of a script it would be imported before the archive has arrived."""
    imports = {
        (path.stem, node.module, is_at_top)
        for path in JOBS.glob("*.py")
        for node, is_at_top in _imports(ast.parse(path.read_text(encoding="utf-8")))
        if (node.module or "").startswith("airflow_hudi_maint.") and node.module.split(".")[1] != "jobs"
    }
    assert imports == {("merge_files", "airflow_hudi_maint.core.merging.group_tasks", False)}


def _imports(tree: ast.Module) -> list[tuple[ast.ImportFrom, bool]]:
    """Each import of names from a module, and whether it is outside of every function."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(one) for function in functions for one in ast.walk(function)}
    return [(node, id(node) not in inside) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
