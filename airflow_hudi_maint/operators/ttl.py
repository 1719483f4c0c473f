"""Keep a table's TTL policies in its ``hoodie.properties``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.policy_settings import (
    SINGLE_POLICY,
    drop_ttl_policies,
    policy_result,
    set_ttl_policies,
)
from airflow_hudi_maint.operators.base import HudiTableOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context


class HudiSetTTLPolicyOperator(HudiTableOperator):
    """Set TTL policies of a table: one, several, or those of a policy file. No partition is dropped by it.

    One policy, or the list, is added to what the table has; a policy of the same spec is replaced, and so is the
    default by a default. The policies of a file *become* the table's: others go. What results is checked as a whole
    before anything is written. A second run changes nothing and succeeds. A change that somebody else makes at the
    same time is kept. Hudi leaves the policies in place when it writes, cleans or upgrades the table.

    Returns ``{"base_path", "table", "changed", "added", "replaced", "dropped", "policies", "message"}``.

    .. seealso:: ``docs/operators.md``

    :param partition_spec: Which partitions the policy is for, such as ``region=eu/``, ``region=*/`` or ``/``; may be
        left out for a default policy of the whole table. (templated)
    :param policy: ``KEEP_BY_TIME``, ``KEEP_BY_COUNT`` or ``KEEP_BY_SIZE``. (templated)
    :param policy_value: Days, sub-partitions or bytes. (templated)
    :param default: Whether it is the default policy, for partitions that no explicit one covers. (templated)
    :param clock: Of KEEP_BY_TIME: ``last_modified``, ``created`` or ``event_time``. (templated)
    :param event_time_pattern: Of clock ``event_time``: how partition values name a time. (templated)
    :param event_time_zone: The zone of that time; UTC unless given. (templated)
    :param expire_null_partitions: Whether partitions with a null value may expire. (templated)
    :param allow_emptying: Whether the newest sub-partition may expire, too. (templated)
    :param policies: Several RFC-65 policies instead, as a list of objects or JSON; one may have ``"default": true``.
        (templated)
    :param policy_file: Path or URL of a policy file instead, YAML or JSON. (templated)
    :param skip_when_idle: As for every operator, but False unless given: that all is as it should be is success.
    """

    template_fields: Sequence[str] = (
        *HudiTableOperator.template_fields,
        *SINGLE_POLICY,
        "default",
        "policies",
        "policy_file",
    )
    template_fields_renderers = {"policies": "json"}  # noqa: RUF012 as Airflow declares it

    def __init__(
        self,
        *,
        partition_spec: str | None = None,
        policy: str | None = None,
        policy_value: int | str | None = None,
        default: bool | str = False,
        clock: str | None = None,
        event_time_pattern: str | None = None,
        event_time_zone: str | None = None,
        expire_null_partitions: bool | str | None = None,
        allow_emptying: bool | str | None = None,
        policies: Sequence[Mapping[str, object]] | str | None = None,
        policy_file: str | None = None,
        skip_when_idle: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(skip_when_idle=skip_when_idle, **kwargs)
        self.partition_spec = partition_spec
        self.policy = policy
        self.policy_value = policy_value
        self.default = default
        self.clock = clock
        self.event_time_pattern = event_time_pattern
        self.event_time_zone = event_time_zone
        self.expire_null_partitions = expire_null_partitions
        self.allow_emptying = allow_emptying
        self.policies = policies
        self.policy_file = policy_file

    def execute(self, context: Context) -> dict[str, Any]:
        """Write the policies."""
        with self.step("Set TTL policies") as hook:
            workspace = hook.workspace(log=self.say)
            changed = set_ttl_policies(
                workspace,
                given={name: getattr(self, name) for name in SINGLE_POLICY},
                default=self.default,
                policies=self.policies,
                policy_file=self.policy_file,
            )
        idle = None if changed.is_changed else str(changed)
        return self.hand_on(context, policy_result(workspace, changed), idle=idle)


class HudiDropTTLPolicyOperator(HudiTableOperator):
    """Drop TTL policies of a table, so that they decide about no partition any more. No partition is dropped by it.

    A policy that is not there is none to drop: a second run changes nothing and succeeds. A change that somebody else
    makes at the same time is kept. Partitions of a dropped policy come under the next one that covers them, which may
    keep less; the log says when Hudi's own TTL settings take over.

    Returns ``{"base_path", "table", "changed", "added", "replaced", "dropped", "policies", "message"}``.

    .. seealso:: ``docs/operators.md``

    :param partition_spec: Spec of the explicit policy to drop. (templated)
    :param default: Whether to drop the default policy. (templated)
    :param all: Whether to drop every policy, also those that are broken. (templated)
    :param skip_when_idle: As for every operator, but False unless given: that nothing is there is success.
    """

    template_fields: Sequence[str] = (*HudiTableOperator.template_fields, "partition_spec", "default", "all")

    def __init__(
        self,
        *,
        partition_spec: str | None = None,
        default: bool | str = False,
        all: bool | str = False,  # noqa: A002 the word for it
        skip_when_idle: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(skip_when_idle=skip_when_idle, **kwargs)
        self.partition_spec = partition_spec
        self.default = default
        self.all = all

    def execute(self, context: Context) -> dict[str, Any]:
        """Drop the policies."""
        with self.step("Drop TTL policies") as hook:
            workspace = hook.workspace(log=self.say)
            changed = drop_ttl_policies(
                workspace, partition_spec=self.partition_spec, default=self.default, all_policies=self.all
            )
        idle = None if changed.is_changed else str(changed)
        return self.hand_on(context, policy_result(workspace, changed), idle=idle)
