"""A policy file: a table's policies, guards and holds as one document in version control."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_hudi_maint.core.errors import InvalidPolicyError, InvalidSettingError
from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
from airflow_hudi_maint.core.model.partition import PartitionScheme
from airflow_hudi_maint.core.model.policy import POLICY_EXAMPLE, PolicySet
from airflow_hudi_maint.core.model.strict_json import shown

POLICY_FILE_VERSION = 1

_KEYS = ("version", "policies", "guards", "protected", "legal_hold")
_EXAMPLE = f'{{"version": 1, "policies": [{POLICY_EXAMPLE}]}}'
_HOLD_EXAMPLE = "legal_hold: ['region=eu/day=2026-11-30'], or legal_hold: {file: holds.txt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """What a policy file says.

    ``guards`` has the file's ``protected`` and ``legal_hold`` with it. ``legal_hold_file`` is the path of a list of
    holds, one a line, relative to the policy file; None once it has been read, and where there is none.
    """

    name: str
    policies: PolicySet
    guards: ExpiryGuards = ExpiryGuards()  # noqa: RUF009 a frozen value
    legal_hold_file: str | None = None

    @classmethod
    def from_json(cls, value: object, *, name: str) -> PolicyFile:
        """Check the content of a policy file, read from YAML or JSON; ``name`` is the file's, for errors and sources.

        Raises InvalidPolicyError or InvalidSettingError that shows the offending text and an example of a right one.
        """
        document = _checked(value, name=name)
        policies = PolicySet.from_json(_list(document, "policies", name=name), source=name)
        # An empty key is YAML's null, and says nothing; any other value has to be what it should be.
        guards = ExpiryGuards.from_json(_given(document, "guards", {}), source=f"{name}: guards")
        hold = _given(document, "legal_hold", [])
        hold_file = _hold_file(hold, name=name) if isinstance(hold, Mapping) else None
        try:
            guards = guards.holding_back(
                protected=_texts(_given(document, "protected", []), key="protected", name=name),
                legal_hold=() if hold_file else _texts(hold, key="legal_hold", name=name),
            )
        except InvalidSettingError as error:
            raise InvalidSettingError(f"{name}: {error}") from None
        return cls(name=name, policies=policies, guards=guards, legal_hold_file=hold_file)

    def to_json(self) -> dict[str, Json]:
        """The document that :meth:`from_json` reads."""
        policies: list[Json] = [
            {**policy.to_json(), **({"default": True} if policy.is_default else {})} for policy in self.policies.all()
        ]
        document: dict[str, Json] = {"version": POLICY_FILE_VERSION, "policies": policies}
        guards = self.guards.to_json()
        held: dict[str, Json] = {key: guards.pop(key) for key in ("protected", "legal_hold") if key in guards}
        if guards:
            document["guards"] = guards
        if self.legal_hold_file:
            held["legal_hold"] = {"file": self.legal_hold_file}
        return {**document, **held}

    def with_holds(self, text: str) -> PolicyFile:
        """The same file with the list that ``legal_hold_file`` names; blank lines and ``#`` lines are comments."""
        lines = [line.partition(" #")[0].strip() for line in text.splitlines()]
        holds = [line for line in lines if line and not line.startswith("#")]
        return replace(self, guards=self.guards.holding_back(legal_hold=holds), legal_hold_file=None)

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError or InvalidSettingError unless all of it fits a table partitioned by ``scheme``."""
        self.policies.check(scheme)
        self.guards.check(scheme)


def _checked(value: object, *, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InvalidPolicyError(f"{name} holds {shown(value)}, no policy file; write for example {_EXAMPLE}")
    for key in value:
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(_KEYS)}"
            raise InvalidPolicyError(f"{name} has the unknown key {key!r}: {shown(value[key])}{hint}")
    version = value.get("version")
    if version != POLICY_FILE_VERSION or isinstance(version, bool):
        msg = f"{name} has the version {shown(version)}; this release reads version {POLICY_FILE_VERSION}: {_EXAMPLE}"
        raise InvalidPolicyError(msg)
    return value


def _given(document: Mapping[str, object], key: str, default: object) -> object:
    value = document.get(key)
    return default if value is None else value


def _list(document: Mapping[str, object], key: str, *, name: str) -> list[object]:
    if key not in document:
        raise InvalidPolicyError(f"{name} lacks {key!r}; write for example {_EXAMPLE}, with [] for no policy at all")
    value = document[key]
    if not isinstance(value, list):
        raise InvalidPolicyError(f"{name}: {key} is {shown(value)}, no list; write for example [{POLICY_EXAMPLE}]")
    return value


def _texts(value: object, *, key: str, name: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        example = _HOLD_EXAMPLE if key == "legal_hold" else "protected: ['region=eu/']"
        raise InvalidSettingError(f"{name}: {key} is {shown(value)}, no list of texts; write for example {example}")
    return value


def _hold_file(value: Mapping[str, object], *, name: str) -> str:
    path = value.get("file")
    if set(value) != {"file"} or not isinstance(path, str) or not path.strip():
        raise InvalidSettingError(f"{name}: legal_hold is {shown(dict(value))}; write for example {_HOLD_EXAMPLE}")
    return path.strip()
