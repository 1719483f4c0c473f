"""Questions about pending plans: which there are, how old, and whose."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_optional_text, as_seconds, as_texts
from airflow_hudi_maint.hooks.plan_settings import partition_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from airflow_hudi_maint.core.maintenance import Workspace
    from airflow_hudi_maint.core.model.commit import PlanKind
    from airflow_hudi_maint.core.model.pending_care import PendingFact
    from airflow_hudi_maint.core.planning.pending_care import ResolveSettings

_OWNERS = ("any", "ours")
_WAITS = ("none", "some")
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """Which pending plans are meant, and what is waited for: until there are ``none``, or ``some``.

    ``kinds`` empty means every kind, ``partitions`` None every partition. A plan that was requested less than
    ``older_than_seconds`` ago does not count.
    """

    wait_for: str = "none"
    kinds: tuple[str, ...] = ()
    partitions: tuple[str, ...] | None = None
    older_than_seconds: float = 0.0
    made_by: str = "any"

    def __post_init__(self) -> None:
        for name, allowed in (("wait_for", _WAITS), ("made_by", _OWNERS)):
            if getattr(self, name) not in allowed:
                msg = f"{name}={getattr(self, name)!r} is unknown; expected {' or '.join(allowed)}"
                raise InvalidSettingError(msg)
        plan_kinds(self.kinds)

    @classmethod
    def of(
        cls, *, wait_for: object, kinds: object, partitions: object, older_than: object, made_by: object
    ) -> PendingQuestion:
        """Read the arguments of a sensor."""
        return cls(
            wait_for=as_optional_text("wait_for", wait_for) or "none",
            kinds=as_texts("kinds", kinds),
            partitions=partition_paths(partitions),
            older_than_seconds=as_seconds("older_than", older_than),
            made_by=as_optional_text("made_by", made_by) or "any",
        )

    def to_json(self) -> dict[str, Any]:
        """What a trigger keeps."""
        return {
            "wait_for": self.wait_for,
            "kinds": list(self.kinds),
            "partitions": None if self.partitions is None else list(self.partitions),
            "older_than_seconds": self.older_than_seconds,
            "made_by": self.made_by,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PendingQuestion:
        """Read what :meth:`to_json` wrote."""
        partitions = value["partitions"]
        return cls(
            wait_for=value["wait_for"],
            kinds=tuple(value["kinds"]),
            partitions=None if partitions is None else tuple(partitions),
            older_than_seconds=value["older_than_seconds"],
            made_by=value["made_by"],
        )

    def counts(self, fact: PendingFact) -> bool:
        """Whether a pending plan is one of those that are meant. One whose age cannot be told counts as old."""
        return (
            (not self.kinds or fact.plan.kind in self.kinds)
            and (self.partitions is None or not fact.plan.partitions.isdisjoint(self.partitions))
            and (fact.age_seconds is None or fact.age_seconds >= self.older_than_seconds)
            and self.made_by in ("any", fact.owner)
        )


def pending_answer(
    workspace: Workspace, question: PendingQuestion, *, now: datetime, say: Callable[..., None]
) -> dict[str, Any] | None:
    """Look once; None while there is something to wait for, which is said with age and owner."""
    from airflow_hudi_maint.core.maintenance.pending import read_pending

    facts = read_pending(workspace, workspace.table.timeline(), now=now)
    meant = [fact for fact in facts if question.counts(fact)]
    if question.wait_for == "none" and meant:
        shown = "; ".join(map(str, meant[:_SHOWN])) + (" …" if len(meant) > _SHOWN else "")
        say("Waiting for %d pending plan(s) of %s: %s", len(meant), workspace.table.base_path, shown)
        return None
    if question.wait_for == "some" and not meant:
        say(
            "Waiting for a pending plan of %s: %d pending, none of those asked for",
            workspace.table.base_path,
            len(facts),
        )
        return None
    return {
        "base_path": workspace.table.base_path,
        "instants": [fact.instant for fact in meant],
        "plans": [fact.to_json() for fact in meant[:_SHOWN]],
    }


def plan_kinds(names: tuple[str, ...]) -> frozenset[PlanKind]:
    """Read kinds of plans by their names."""
    from airflow_hudi_maint.core.model.commit import PlanKind

    unknown = next((name for name in names if name not in tuple(PlanKind)), None)
    if unknown is not None:
        raise InvalidSettingError(f"kinds holds {unknown!r}; known are {', '.join(PlanKind)}")
    return frozenset(map(PlanKind, names))


def resolve_settings(*, action: object, older_than: object, made_by: object, kinds: object) -> ResolveSettings:
    """Read what is to become of pending plans."""
    from airflow_hudi_maint.core.model.pending_care import ResolveAction
    from airflow_hudi_maint.core.planning.pending_care import ResolveSettings

    choice = as_optional_text("action", action) or ResolveAction.FINISH
    if choice not in tuple(ResolveAction):
        raise InvalidSettingError(f"action={action!r} is unknown; expected {', '.join(ResolveAction)}")
    whose = as_optional_text("made_by", made_by) or "ours"
    if whose not in _OWNERS:
        raise InvalidSettingError(f"made_by={made_by!r} is unknown; expected {' or '.join(_OWNERS)}")
    given = plan_kinds(as_texts("kinds", kinds))
    return ResolveSettings(
        action=ResolveAction(choice),
        older_than=timedelta(seconds=as_seconds("older_than", older_than)),
        any_owner=whose == "any",
        **({"kinds": given} if given else {}),
    )
