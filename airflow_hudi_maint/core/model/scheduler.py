"""Who puts a clustering plan on the timeline, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from airflow_hudi_maint.core.errors import InvalidSettingError

KEY_PREFIX: Final = "airflow_hudi_maint."
"""How every key of ours in a plan's extra metadata starts."""
PLAN_PATH_KEY: Final = f"{KEY_PREFIX}plan"
LAYOUT_KEY: Final = f"{KEY_PREFIX}layout"
"""Hudi takes the layout from the options of the execution and keeps it in no plan of its own."""
SCHEDULER_KEY: Final = f"{KEY_PREFIX}scheduler"

_DAG, _RUN, _TASK, _MAP = (f"{KEY_PREFIX}{name}" for name in ("dag_id", "run_id", "task_id", "map_index"))


class Scheduler(StrEnum):
    """The ways in which a clustering plan reaches the timeline; ``auto`` takes native where that is safe."""

    AUTO = "auto"
    HUDI = "hudi"
    NATIVE = "native"

    @classmethod
    def parse(cls, value: str) -> Scheduler:
        """Read a scheduler by its name; raises InvalidSettingError for an unknown one.

        >>> Scheduler.parse("Native")
        <Scheduler.NATIVE: 'native'>
        """
        try:
            return cls(value.strip().lower())
        except ValueError:
            msg = f"scheduler={value!r} is unknown; expected {', '.join(cls)}"
            raise InvalidSettingError(msg) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOwner:
    """The task instance that a plan was made by; ``map_index`` is negative for a task that is not mapped."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def to_metadata(self) -> dict[str, str]:
        """The texts that a plan carries of it.

        >>> PlanOwner(dag_id="nightly", run_id="r1", task_id="cluster").to_metadata()["airflow_hudi_maint.task_id"]
        'cluster'
        """
        return {_DAG: self.dag_id, _RUN: self.run_id, _TASK: self.task_id, _MAP: str(self.map_index)}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> PlanOwner | None:
        """Read what :meth:`to_metadata` wrote; None where a plan says nothing of it."""
        dag_id, run_id, task_id = (metadata.get(key) for key in (_DAG, _RUN, _TASK))
        if dag_id is None or run_id is None or task_id is None:
            return None
        number = metadata.get(_MAP, "-1")
        map_index = int(number) if number.removeprefix("-").isdecimal() else -1
        return cls(dag_id=dag_id, run_id=run_id, task_id=task_id, map_index=map_index)

    def __str__(self) -> str:
        mapped = f" [{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}.{self.task_id}{mapped} of run {self.run_id}"


def is_native(metadata: Mapping[str, str]) -> bool:
    """Whether a plan's extra metadata says that this package wrote the plan itself."""
    return metadata.get(SCHEDULER_KEY) == Scheduler.NATIVE
