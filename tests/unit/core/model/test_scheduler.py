"""Who a plan was made by, as its extra metadata keeps it."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.scheduler import PlanOwner, Scheduler, is_native

OWNER = PlanOwner(dag_id="nightly", run_id="scheduled__2026-11-30T00:00:00+00:00", task_id="day.cluster", map_index=2)


@pytest.mark.parametrize("map_index", [-1, 0, 2])
def test_an_owner_is_read_back_from_texts(map_index: int) -> None:
    """Every value of a plan's extra metadata is a text; other keys do not disturb."""
    owner = PlanOwner(dag_id="d", run_id="r", task_id="t", map_index=map_index)
    metadata = owner.to_metadata()

    assert all(isinstance(value, str) for value in metadata.values())
    assert owner == PlanOwner.from_metadata({"other": "x", **metadata})


def test_a_plan_of_somebody_else_has_no_owner() -> None:
    """Nor does one that names a part; a map index that is no number is none."""
    metadata = OWNER.to_metadata()

    assert None is PlanOwner.from_metadata({})
    assert None is PlanOwner.from_metadata({key: text for key, text in metadata.items() if not key.endswith("run_id")})
    broken = PlanOwner.from_metadata({**metadata, "airflow_hudi_maint.map_index": "two"})
    assert broken is not None
    assert -1 == broken.map_index


def test_an_owner_is_said_in_one_phrase() -> None:
    """With the map index where there is one."""
    assert "nightly.day.cluster [2] of run scheduled__2026-11-30T00:00:00+00:00" == str(OWNER)
    assert "d.t of run r" == str(PlanOwner(dag_id="d", run_id="r", task_id="t"))


def test_a_scheduler_is_read_by_its_name() -> None:
    """In any case, with blanks; another is refused with those that there are."""
    assert Scheduler.HUDI is Scheduler.parse(" HUDI ")
    with pytest.raises(InvalidSettingError, match="expected auto, hudi, native"):
        Scheduler.parse("spark")


def test_only_a_plan_of_ours_is_native() -> None:
    """By the key alone."""
    assert is_native({"airflow_hudi_maint.scheduler": "native"})
    assert not is_native({"airflow_hudi_maint.scheduler": "hudi"})
    assert not is_native({})
