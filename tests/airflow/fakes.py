"""Stand-ins for what Airflow gives a running task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class FakeTaskInstance:
    """A task instance of a run; keeps what is pushed."""

    dag_id: str = "maintain"
    task_id: str = "step"
    run_id: str = "manual__1"
    map_index: int = -1
    pushed: dict[str, Any] = field(default_factory=dict)

    def xcom_push(self, *, key: str, value: Any) -> None:
        """Keep the value."""
        self.pushed[key] = value


class FakeStore(dict[str, Any]):
    """A task state store that lives as long as the test."""

    def set(self, key: str, value: Any) -> None:
        """Keep the value; None is refused, as the real store does."""
        if value is None:
            raise ValueError("Cannot set value as None")
        self[key] = value

    def delete(self, key: str) -> None:
        """Forget the value, if there is one."""
        self.pop(key, None)


@dataclass
class FakeEvent:
    """The event of one outlet."""

    extra: dict[str, Any] = field(default_factory=dict)


def context(*, store: FakeStore | None = None, ti: FakeTaskInstance | None = None, **more: Any) -> Any:
    """Return a context with a task instance and a store."""
    return {"ti": ti or FakeTaskInstance(), "task_state_store": FakeStore() if store is None else store, **more}
