"""Operators on a table on S3, by Airflow's own connection of type aws; no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.operators.expiry import HudiPlanExpiryOperator
from airflow_hudi_maint.operators.statistics import HudiGatherStatisticsOperator
from tests.airflow.fakes import context
from tests.airflow.tables import three_days
from tests.s3_server import S3Server

pytestmark = pytest.mark.s3

SECRET = "hush-hush-hush"  # noqa: S105 no secret


@pytest.fixture
def bucket(s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table on S3, documents elsewhere in the bucket, and the connections ``lake`` and ``hudi_test``."""
    bucket = s3.new_bucket()
    three_days(str(tmp_path / "trips"))
    s3.put_folder(bucket, tmp_path / "trips", prefix="db/trips")
    lake = {
        "conn_type": "aws",
        "login": "AKIA-of-tests",
        "password": SECRET,
        "extra": {"region_name": "us-east-1", "endpoint_url": s3.url},
    }
    hudi = {
        "conn_type": "hudi",
        "host": f"s3://{bucket}/db/trips",
        "extra": {
            "storage_conn_id": "lake",
            "documents_location": f"s3://{bucket}/documents",
            "storage_concurrency": 4,
        },
    }
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(lake))
    monkeypatch.setenv("AIRFLOW_CONN_HUDI_TEST", json.dumps(hudi))
    s3.forget()
    return bucket


def run(cls: Any, **arguments: Any) -> dict[str, Any]:
    result: dict[str, Any] = cls(task_id="step", hudi_conn_id="hudi_test", **arguments).execute(context())
    return result


def test_the_connection_can_be_tested(bucket: str) -> None:
    """The form's button opens the table with the storage's credentials."""
    works, said = HudiHook("hudi_test").test_connection()

    assert works, said
    assert said.startswith("trips: COPY_ON_WRITE, table version 8")


def test_statistics_and_an_expiry_plan_are_written_to_s3(
    bucket: str, s3: S3Server, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """Beside other tables' documents, with nothing written to the table and no secret in any document or line."""
    caplog.set_level("DEBUG", logger="airflow_hudi_maint")
    gathered = run(HudiGatherStatisticsOperator)
    planned = run(
        HudiPlanExpiryOperator,
        policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}],
    )

    assert 3 == gathered["partitions"]
    assert 1 == planned["expired"]
    for path in (gathered["statistics_path"], planned["plan_path"]):
        assert path.startswith(f"s3://{bucket}/documents/trips-")
    written = [one.path for one in s3.asked() if one.verb == "PUT"]
    assert written
    assert all(path.startswith(f"/{bucket}/documents/") for path in written)
    workspace = HudiHook("hudi_test").workspace()
    documents = [workspace.documents.read(planned["plan_path"]), workspace.documents.read(gathered["statistics_path"])]
    for text in (json.dumps(documents), json.dumps([gathered, planned]), caplog.text, *capsys.readouterr()):
        assert SECRET not in text
        assert "AKIA-of-tests" not in text
