"""From the arguments of an operator or a command to TTL policies: one policy, a list, or a policy file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_bool, as_exact_text, as_object, as_optional_text, is_unset
from airflow_hudi_maint.hooks.plan_settings import expiry_guards, ttl_policies

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_hudi_maint.core.maintenance import ChangedPolicies, Workspace
    from airflow_hudi_maint.core.model.document import JsonObject
    from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards
    from airflow_hudi_maint.core.model.partition import PartitionSpec
    from airflow_hudi_maint.core.model.policy import PolicySet, TTLPolicy
    from airflow_hudi_maint.core.model.policy_file import PolicyFile

OPTIONS = {
    "clock": "clock",
    "event_time_pattern": "eventTimePattern",
    "event_time_zone": "eventTimeZone",
    "expire_null_partitions": "expireNullPartitions",
    "allow_emptying": "allowEmptying",
}
"""Arguments for what a policy may say beyond RFC-65, with the keys of its JSON."""
SINGLE_POLICY = ("partition_spec", "policy", "policy_value", *OPTIONS)
"""The arguments of one policy, but for ``default``."""

_SWITCHES = ("expire_null_partitions", "allow_emptying")
_HELD = ("protected", "legal_hold")
_EXAMPLE = "partition_spec='region=eu/', policy='KEEP_BY_TIME', policy_value=30"


def single_policy(given: Mapping[str, object], *, default: object = False, source: str = "argument") -> TTLPolicy:
    """Read one policy from :data:`SINGLE_POLICY`; a default one without a spec is for the whole table."""
    from dataclasses import replace

    from airflow_hudi_maint.core.model.policy import TTLPolicy

    is_default = as_bool("default", False if is_unset(default) else default)
    spec = as_exact_text("partition_spec", given.get("partition_spec"))
    needed: dict[str, object] = {"partition_spec": spec or ("/" if is_default else None)}
    needed |= {name: given.get(name) for name in ("policy", "policy_value")}
    missing = [name for name, value in needed.items() if is_unset(value)]
    if missing:
        raise InvalidSettingError(f"a policy lacks {', '.join(missing)}; give for example {_EXAMPLE}")
    read = {"partitionSpec": needed["partition_spec"], "policy": given["policy"], "policyValue": given["policy_value"]}
    for name, key in OPTIONS.items():
        if not is_unset(given.get(name)):
            read[key] = as_bool(name, given[name]) if name in _SWITCHES else as_optional_text(name, given[name])
    return replace(TTLPolicy.from_json(read, source=source), is_default=is_default)


def set_ttl_policies(
    workspace: Workspace, *, given: Mapping[str, object], default: object, policies: object, policy_file: object
) -> ChangedPolicies:
    """Set what is given, exactly one of the three: one policy, a list of them, or all that a policy file says."""
    from airflow_hudi_maint.core import maintenance

    single = [name for name in SINGLE_POLICY if not is_unset(given.get(name))]
    path = as_exact_text("policy_file", policy_file)
    listed = ttl_policies(policies)
    ways = [*single[:1], *(["policies"] if listed is not None else []), *(["policy_file"] if path else [])]
    if len(ways) != 1:
        found = " and ".join(ways) or "none of them"
        msg = f"give one policy ({_EXAMPLE}), or policies, or policy_file; given {'are' if ways else 'is'} {found}"
        raise InvalidSettingError(msg)
    if not single and not is_unset(default) and as_bool("default", default):
        raise InvalidSettingError(
            f"default={default!r} says nothing beside {ways[0]}; mark one of its policies instead"
        )
    if path:
        return maintenance.apply_policy_file(workspace, maintenance.read_policy_file(workspace, path))
    if listed is not None:
        return maintenance.set_policies(workspace, listed)
    return maintenance.set_policy(workspace, single_policy(given, default=default))


def drop_ttl_policies(
    workspace: Workspace, *, partition_spec: object, default: object, all_policies: object
) -> ChangedPolicies:
    """Drop the policy on a spec, the default one, or all; raises InvalidSettingError where none of these is asked."""
    from airflow_hudi_maint.core import maintenance

    is_default = as_bool("default", False if is_unset(default) else default)
    if as_bool("all", False if is_unset(all_policies) else all_policies):
        return maintenance.empty_policies(workspace)
    spec = policy_spec(partition_spec)
    if spec is None and not is_default:
        raise InvalidSettingError("nothing says which policy to drop: give partition_spec, default=True or all=True")
    return maintenance.drop_policy(workspace, spec=spec, default=is_default)


def policy_spec(value: object) -> PartitionSpec | None:
    """Read a spec; None when not given."""
    from airflow_hudi_maint.core.model.partition import PartitionSpec

    text = as_exact_text("partition_spec", value)
    return None if text is None else PartitionSpec.parse(text)


def expiry_rules(
    workspace: Workspace, *, policies: object, guards: object, policy_file: object, is_planned: bool = False
) -> tuple[PolicySet | None, ExpiryGuards | None]:
    """Read the policies and guards of an expiry, where a policy file may be given instead of policies.

    Guards that are given go over the file's, one by one; lists of protected specs and holds add up. Under a plan that
    is there already (``is_planned``) the policies are the plan's, and the file's guards and holds count all the same.
    """
    from airflow_hudi_maint.core.maintenance import read_policy_file

    path = as_exact_text("policy_file", policy_file)
    if path is None:
        return ttl_policies(policies), expiry_guards(guards)
    if not is_unset(policies):
        raise InvalidSettingError(f"both policies and policy_file={path!r} are given; give one of them")
    file = read_policy_file(workspace, path)
    return None if is_planned else file.policies, guards_over(file, guards)


def policy_result(workspace: Workspace, changed: ChangedPolicies) -> JsonObject:
    """The result of a task that changed policies."""
    diff = changed.diff
    return {
        "base_path": workspace.table.base_path,
        "table": workspace.table.config.name,
        "changed": changed.is_changed,
        "added": len(diff.added),
        "replaced": len(diff.changed),
        "dropped": len(diff.removed),
        "policies": len(changed.after.all()),
        "message": str(changed),
    }


def guards_over(file: PolicyFile, given: object) -> ExpiryGuards:
    """The guards of a policy file, with those that are given over them, one by one; lists of what is held add up."""
    from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards

    of_file, on_top = file.guards, as_object("guards", given)
    ExpiryGuards.from_json(on_top)  # alone, so that an error names what was given here
    limits = {name: value for name, value in on_top.items() if name not in _HELD}
    both = ExpiryGuards.from_json({**of_file.to_json(), **limits}, source=f"guards over those of {file.name}")
    held = ExpiryGuards.from_json({name: on_top[name] for name in _HELD if name in on_top})
    return both.holding_back(protected=held.protected, legal_hold=held.legal_hold)
