"""An argument that another task was to give, and did not, is no argument that was left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_hudi_maint.operators.clustering import HudiScheduleClusteringOperator
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator
from airflow_hudi_maint.operators.report import HudiReportOperator
from airflow_hudi_maint.operators.undo import HudiRestorePartitionsOperator
from tests.airflow.fakes import FakeTaskInstance, context
from tests.airflow.marks import AIRFLOW
from tests.golden.golden import unpack

pytestmark = AIRFLOW


class Forgetful(FakeTaskInstance):
    """A task instance whose forerunners pushed nothing."""

    def xcom_pull(self, **_: Any) -> Any:
        return None


def rendered(cls: Any, *, name: str, **arguments: Any) -> Any:
    """An operator whose argument ``name`` is the result of a task that left none."""
    with DAG("lost", schedule=None):
        before = BaseOperator(task_id="before")
        operator = cls(task_id="step", hudi_conn_id=None, **{**arguments, name: before.output})
    given = context(ti=Forgetful())
    operator.render_template_fields(given)
    return operator, given


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (HudiScheduleClusteringOperator, "partitions"),
        (HudiPlanExpiryOperator, "policies"),
        (HudiPlanExpiryOperator, "base_path"),
        (HudiExpirePartitionsOperator, "policies"),
        (HudiExpirePartitionsOperator, "policy_file"),
        (HudiRestorePartitionsOperator, "partitions"),
        (HudiRestorePartitionsOperator, "drop"),
    ],
)
def test_a_lost_result_never_means_the_wide_default(tmp_path: Path, cls: Any, name: str) -> None:
    """Every partition, other policies, another table: the task fails, and the table is as it was."""
    table = unpack("v9_cow_plain", tmp_path)
    before = sorted(table.rglob("*"))
    operator, given = rendered(cls, name=name, base_path=str(table))
    with pytest.raises(AirflowFailException, match=f"{name}: the task whose result it is left none"):
        operator.execute(given)
    assert sorted(table.rglob("*")) == before


def test_a_report_is_written_all_the_same(tmp_path: Path) -> None:
    """Policies are for its forecast alone."""
    table = unpack("v9_cow_plain", tmp_path)
    operator, given = rendered(HudiReportOperator, name="policies", base_path=str(table), picture=False)
    assert Path(operator.execute(given)["report_path"]).exists()


def test_what_is_left_out_is_left_out(tmp_path: Path) -> None:
    operator = HudiPlanExpiryOperator(
        task_id="step", hudi_conn_id=None, base_path=str(unpack("v9_cow_plain", tmp_path)), policies="[]"
    )
    given = context()
    operator.skip_when_idle = False
    operator.render_template_fields(given)
    assert operator.execute(given)["expired"] == 0
