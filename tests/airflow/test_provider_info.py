"""What Airflow is told of the provider."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import airflow
import jsonschema
import pytest

from airflow_hudi_maint.get_provider_info import get_provider_info
from airflow_hudi_maint.hooks.settings import ENGINES, HudiConnectionSettings
from tests.airflow.environment import ROOT
from tests.airflow.marks import AIRFLOW

pytestmark = AIRFLOW


def schema(name: str) -> Any:
    return json.loads((Path(airflow.__file__).parent / name).read_text())


def connection_type() -> dict[str, Any]:
    (only,) = get_provider_info()["connection-types"]
    return only


def test_it_is_what_airflow_s_schema_asks_for() -> None:
    """Airflow leaves out a provider whose metadata does not fit."""
    jsonschema.validate(get_provider_info(), schema("provider_info.schema.json"))
    # The form is described in full only in the schema of the community's own providers.
    form = schema("provider.yaml.schema.json")["properties"]["connection-types"]
    jsonschema.validate(get_provider_info()["connection-types"], form)


def test_each_module_and_class_that_it_names_can_be_imported() -> None:
    """A name that is wrong would show only when somebody opens a form."""
    info = get_provider_info()
    for kind in ("operators", "sensors", "hooks", "triggers"):
        for name in info[kind][0]["python-modules"]:
            importlib.import_module(name)
    for name in (connection_type()["hook-class-name"], *info["extra-links"]):
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute)


def test_every_module_of_the_glue_is_named() -> None:
    """A new operator, sensor or trigger is listed too; what they share is no noun of its own."""
    info = get_provider_info()
    shared = {"__init__", "base", "rewriting", "settings", "arguments", "errors"} | {
        "operators.job",
        "operators.job_keeping",
        "hooks.cluster_connection",
        "hooks.engines",
        "hooks.livy",
        "hooks.timeline",
        "hooks.outlets",
        "hooks.metrics",
        "hooks.plan_settings",
        "hooks.compaction_settings",
        "hooks.execution_settings",
        "hooks.pending",
        "hooks.plain_files",
        "hooks.small_file_question",
        "hooks.small_file_settings",
        "hooks.policy_settings",
        "hooks.undo_window",
        "hooks.storage_connection",
        "triggers.settling",
    }
    for kind in ("operators", "sensors", "triggers", "hooks"):
        files = {path.stem for path in (ROOT / "airflow_hudi_maint" / kind).glob("*.py")} - shared
        files -= {name.partition(".")[2] for name in shared if name.startswith(f"{kind}.")}
        named = {name.rpartition(".")[2] for name in info[kind][0]["python-modules"]}
        assert named == files


def test_the_form_has_each_field_that_the_hook_reads() -> None:
    """The form and the hook cannot drift apart."""
    fields = connection_type()["conn-fields"]
    assert set(fields) | {"base_path"} == set(HudiConnectionSettings.__dataclass_fields__)
    assert tuple(fields["engine"]["schema"]["enum"]) == ENGINES
    assert set(connection_type()["ui-field-behaviour"]["placeholders"]) <= {"host", *fields}


def test_it_is_read_without_importing_airflow() -> None:
    """Airflow asks while it is still being imported."""
    code = (
        "import sys; from airflow_hudi_maint.get_provider_info import get_provider_info; get_provider_info();"
        "sys.exit('airflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["list"], ["airflow-hudi-maint", "Keep Apache Hudi"]),
        (["get", "airflow-hudi-maint"], ["airflow-hudi-maint"]),
        (["hooks"], ["hudi", "airflow_hudi_maint.hooks.hudi.HudiHook", "hudi_conn_id", "Apache Hudi table"]),
        (["links"], ["airflow_hudi_maint.links.report.HudiReportLink"]),
        (["triggers"], ["airflow_hudi_maint.triggers.timeline"]),
    ],
)
def test_airflow_lists_it(command: list[str], expected: list[str]) -> None:
    """``airflow providers …`` shows the provider and what it brings."""
    airflow_command = [sys.executable, "-m", "airflow", "providers", *command, "--output", "plain"]
    answer = subprocess.run(airflow_command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert answer.returncode == 0, answer.stderr
    assert [text for text in expected if text not in answer.stdout] == []
