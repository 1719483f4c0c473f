"""Read policy files: YAML or JSON in version control, checked, with what is wrong shown as it was written."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import DocumentNotFoundError, InvalidPolicyError, InvalidSettingError, StorageError
from airflow_hudi_maint.core.model.policy_file import PolicyFile
from airflow_hudi_maint.core.model.strict_json import load_strictly, shown
from airflow_hudi_maint.core.storage.filesystem import Storage

if TYPE_CHECKING:
    from yaml import MappingNode, SafeLoader

_INT_TAG = "tag:yaml.org,2002:int"
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$")
"""Else YAML 1.1 reads 010 as eight, and 1:30 as ninety."""

_EXAMPLE = "version: 1, policies: [{partitionSpec: user_id=*/, policy: KEEP_BY_TIME, policyValue: 30}]"


def load_policy_file(path: str, *, storage_options: Mapping[str, object] | None = None) -> PolicyFile:
    """Read the policy file at a path or URL, with the list of holds that it refers to.

    Raises DocumentNotFoundError for a file that is not there, InvalidPolicyError and InvalidSettingError for what it
    holds, and StorageError.
    """
    if "://" not in path and not path.startswith(("/", "file:", "local:")):
        raise InvalidSettingError(
            f"policy file {path!r} is a relative path, which means another place in each process; give an absolute "
            "path or a URL"
        )
    folder, _, name = path.rpartition("/")
    storage = Storage.open(folder or "/", storage_options=storage_options)
    found = parse_policy_file(_read(storage, name, said_by=path), name=name)
    if found.legal_hold_file is None:
        return found
    return found.with_holds(_read(storage, found.legal_hold_file, said_by=f"{path} (legal_hold)"))


def parse_policy_file(text: str, *, name: str) -> PolicyFile:
    """Read the text of a policy file: JSON where its name ends so, else YAML, of which JSON is a part."""
    value = _json(text, name=name) if name.endswith(".json") else _yaml(text, name=name)
    return PolicyFile.from_json(value, name=name)


def _read(storage: Storage, name: str, *, said_by: str) -> str:
    try:
        return storage.read_bytes(name).decode("utf-8")
    except FileNotFoundError as error:
        where = storage.join(name)
        named = "" if said_by.endswith(where) else f", named by {said_by},"
        raise DocumentNotFoundError(f"{where}{named} does not exist") from error
    except StorageError as error:
        if isinstance(error.__cause__, IsADirectoryError):
            raise InvalidPolicyError(f"{storage.join(name)} is a folder; give the file in it") from error
        raise
    except UnicodeDecodeError as error:
        raise InvalidPolicyError(f"{storage.join(name)} is no UTF-8 text ({error}); save it as UTF-8") from error


def _json(text: str, *, name: str) -> object:
    try:
        return load_strictly(text)
    except ValueError as error:
        raise InvalidPolicyError(
            f"{name} is no JSON ({error}): {shown(text)}; write for example {{{_EXAMPLE}}}"
        ) from error


def _yaml(text: str, *, name: str) -> object:
    import yaml  # Airflow's own requirement

    try:
        return yaml.load(text, Loader=_strict_loader())  # noqa: S506 a SafeLoader that refuses doubled keys
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise InvalidPolicyError(f"{name} is no YAML ({why}): {shown(text)}; write for example {_EXAMPLE}") from error


def _strict_loader() -> type[SafeLoader]:
    import yaml

    class StrictLoader(yaml.SafeLoader):  # type: ignore[misc] # yaml ships no types
        """YAML's safe types; a doubled key is an error, and dates, octal and other odd numbers stay texts."""

        def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 yaml's signature
            seen: set[object] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    line = key_node.start_mark.line + 1
                    raise ValueError(f"the key {key!r} stands twice in one mapping, again in line {line}")
                seen.add(key)
            found: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
            return found

    loose = {_INT_TAG, "tag:yaml.org,2002:timestamp"}
    StrictLoader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in known if tag not in loose]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    StrictLoader.add_implicit_resolver(_INT_TAG, _DECIMAL, list("+-0123456789"))
    return StrictLoader
