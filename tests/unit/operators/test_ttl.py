"""The operators that keep a table's TTL policies, and policy files in the operators that plan and expire."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.operators.expiry import HudiExpirePartitionsOperator, HudiPlanExpiryOperator
from airflow_hudi_maint.operators.ttl import HudiDropTTLPolicyOperator, HudiSetTTLPolicyOperator
from tests.airflow.fakes import context
from tests.airflow.tables import TableBuilder, three_days

KEEP_TWO = {"partition_spec": "/", "policy": "KEEP_BY_COUNT", "policy_value": 2}
EACH = (HudiSetTTLPolicyOperator, HudiDropTTLPolicyOperator)
FILE = """
version: 1
policies: [{partitionSpec: /, policy: KEEP_BY_COUNT, policyValue: 1}]
guards: {max_partition_share: 0.9, max_byte_share: 0.9, max_record_share: 0.9}
"""


@pytest.fixture
def table(tmp_path: Path) -> TableBuilder:
    return three_days(str(tmp_path / "trips"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "policies.yaml"
    path.write_text(FILE)
    return path


def run(cls: Any, table: TableBuilder, **arguments: Any) -> dict[str, Any]:
    operator = cls(**{"task_id": "step", "hudi_conn_id": None, "base_path": table.base_path, **arguments})
    result: dict[str, Any] = operator.execute(context())
    assert json.loads(json.dumps(result)) == result, "results are JSON-native"
    return result


def kept(table: TableBuilder) -> list[str]:
    return [str(one) for one in maintenance.show_policies(maintenance.open_workspace(table.base_path)).all()]


def test_a_policy_is_set_once_and_a_second_run_succeeds_without_a_change(table: TableBuilder) -> None:
    """Numbers and switches may be texts, as a template gives them."""
    given = {**KEEP_TWO, "policy_value": "2", "default": "False", "allow_emptying": "true", "clock": ""}
    first = run(HudiSetTTLPolicyOperator, table, **given)
    assert {
        "base_path": table.base_path, "table": "trips", "changed": True, "added": 1, "replaced": 0, "dropped": 0,
        "policies": 1, "message": "TTL policies written: 1 added, 0 changed, 0 dropped; the table has 1 policy",
    } == first  # fmt: skip
    second = run(HudiSetTTLPolicyOperator, table, **given)
    assert (False, 0, "Nothing changes: the table has 1 policy") == (
        second["changed"],
        second["added"],
        second["message"],
    )
    (policy,) = maintenance.show_policies(maintenance.open_workspace(table.base_path)).all()
    assert policy.may_empty


def test_a_default_policy_needs_no_spec(table: TableBuilder) -> None:
    run(HudiSetTTLPolicyOperator, table, policy="KEEP_BY_TIME", policy_value=30, default=True)
    assert ["KEEP_BY_TIME 30 on /"] == kept(table)


def test_every_option_of_a_policy_arrives(table: TableBuilder) -> None:
    run(
        HudiSetTTLPolicyOperator,
        table,
        partition_spec="day=*/",
        policy="keep_by_time",
        policy_value=30,
        clock="event_time",
        event_time_pattern="day=%Y-%m-%d",
        event_time_zone="Europe/Berlin",
        expire_null_partitions=True,
    )
    (policy,) = maintenance.show_policies(maintenance.open_workspace(table.base_path)).all()
    assert {
        "clock": "event_time",
        "eventTimePattern": "day=%Y-%m-%d",
        "eventTimeZone": "Europe/Berlin",
        "expireNullPartitions": True,
    } == policy.options


def test_a_list_is_added_and_a_file_replaces(table: TableBuilder, file: Path) -> None:
    listed = [{"partitionSpec": "day=1/", "policy": "KEEP_BY_TIME", "policyValue": 1}]
    run(HudiSetTTLPolicyOperator, table, **KEEP_TWO)
    assert 2 == run(HudiSetTTLPolicyOperator, table, policies=json.dumps(listed))["policies"]
    result = run(HudiSetTTLPolicyOperator, table, policy_file=str(file))
    assert (0, 1, 1) == (result["added"], result["replaced"], result["dropped"])
    assert ["KEEP_BY_COUNT 1 on /"] == kept(table)


@pytest.mark.parametrize("how", [{"partition_spec": "/"}, {"all": "true"}])
def test_a_policy_is_dropped_and_a_second_run_succeeds(table: TableBuilder, how: dict[str, Any]) -> None:
    run(HudiSetTTLPolicyOperator, table, **KEEP_TWO)
    result = run(HudiDropTTLPolicyOperator, table, **how)
    assert (True, 1) == (result["changed"], result["dropped"])
    assert [] == kept(table)
    assert not run(HudiDropTTLPolicyOperator, table, **how)["changed"]


def test_the_default_is_dropped_by_name(table: TableBuilder) -> None:
    run(HudiSetTTLPolicyOperator, table, policy="KEEP_BY_TIME", policy_value=30, default=True)
    assert 0 == run(HudiDropTTLPolicyOperator, table, partition_spec="/")["dropped"]
    assert 1 == run(HudiDropTTLPolicyOperator, table, default="yes")["dropped"]


@pytest.mark.parametrize(
    ("cls", "arguments", "message"),
    [
        (HudiSetTTLPolicyOperator, {}, "give one policy .*or policies, or policy_file; given is none of them"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "policies": []}, "given are partition_spec and policies"),
        (HudiSetTTLPolicyOperator, {"policies": [], "policy_file": "/x"}, "given are policies and policy_file"),
        (HudiSetTTLPolicyOperator, {"policies": [], "default": True}, "default=True says nothing beside policies"),
        (HudiSetTTLPolicyOperator, {"policy": "KEEP_BY_TIME"}, "a policy lacks partition_spec, policy_value"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "policy": "KEEP_FOREVER"}, "'KEEP_FOREVER' is unknown"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "policy_value": "2 days"}, "'2 days' is no whole number"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "policy_value": 0}, "expected at least 1"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "partition_spec": "city=*/"}, "the table is partitioned by"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "partition_spec": "None"}, "is what a template makes of nothing"),
        (HudiSetTTLPolicyOperator, {**KEEP_TWO, "default": "maybe"}, "default='maybe' is neither true nor false"),
        (HudiSetTTLPolicyOperator, {"policies": "[{]"}, "policies is no JSON"),
        (HudiSetTTLPolicyOperator, {"policy_file": "/no/where.yaml"}, "where.yaml"),
        (HudiSetTTLPolicyOperator, {"policy_file": "where.yaml"}, "policy file 'where.yaml' is a relative path"),
        (HudiDropTTLPolicyOperator, {}, "nothing says which policy to drop"),
        (HudiDropTTLPolicyOperator, {"partition_spec": "day"}, "'day' is not field=value"),
    ],
)
def test_bad_input_fails_without_a_retry_and_says_what(
    table: TableBuilder, cls: Any, arguments: dict[str, Any], message: str
) -> None:
    before = (Path(table.base_path) / ".hoodie/hoodie.properties").read_bytes()
    with pytest.raises(AirflowFailException, match=message):
        run(cls, table, **arguments)
    assert before == (Path(table.base_path) / ".hoodie/hoodie.properties").read_bytes()


@pytest.mark.parametrize("cls", EACH)
def test_every_template_field_is_an_argument_and_an_attribute(cls: Any) -> None:
    operator = cls(task_id="step", **dict.fromkeys(cls.template_fields))
    assert [] == [name for name in cls.template_fields if not hasattr(operator, name)]


@pytest.mark.parametrize("cls", EACH)
def test_a_step_that_is_switched_off_reads_nothing(cls: Any, tmp_path: Path) -> None:
    with pytest.raises(AirflowSkipException, match="switched off"):
        run(cls, TableBuilder(base_path=str(tmp_path / "nothing")), enabled=False)


def test_a_step_that_changed_nothing_skips_itself_where_it_is_asked_to(table: TableBuilder) -> None:
    """By default it succeeds: the table is as it should be."""
    run(HudiSetTTLPolicyOperator, table, **KEEP_TWO)
    with pytest.raises(AirflowSkipException, match="Nothing changes: the table has 1 policy"):
        run(HudiSetTTLPolicyOperator, table, **KEEP_TWO, skip_when_idle=True)


def test_a_plan_is_made_by_a_policy_file(table: TableBuilder, file: Path) -> None:
    """With its guards: two of three partitions are more than the half that is allowed otherwise."""
    plan = run(HudiPlanExpiryOperator, table, policy_file=str(file))
    assert (2, 1) == (plan["expired"], plan["kept"])
    (policy,) = json.loads(Path(plan["plan_path"]).read_text())["policies"]
    assert "policies.yaml" == policy["source"]
    rehearsed = run(HudiExpirePartitionsOperator, table, policy_file=str(file), plan_only=True)
    assert ("dry-run", 2) == (rehearsed["outcome"], rehearsed["partitions"])


def test_guards_that_are_given_go_over_those_of_the_file(table: TableBuilder, file: Path) -> None:
    """One by one: the file's limit of bytes still counts."""
    with pytest.raises(AirflowFailException, match=r"GuardTrippedError.*max_partition_share=0\.1"):
        run(HudiExpirePartitionsOperator, table, policy_file=str(file), guards={"max_partition_share": 0.1})


def test_holds_of_the_file_and_of_the_task_add_up(table: TableBuilder, file: Path) -> None:
    days = sorted(path.name for path in Path(table.base_path).glob("day=*"))
    file.write_text(f"{FILE}legal_hold: [{days[0]}]\n")
    plan = run(HudiPlanExpiryOperator, table, policy_file=str(file), guards={"protected": [f"{days[1]}/"]})
    assert 0 == plan["expired"]


def test_a_plan_that_is_given_keeps_its_policies_and_meets_the_file_s_guards(table: TableBuilder, file: Path) -> None:
    plan = run(
        HudiPlanExpiryOperator, table, policies=[{"partitionSpec": "/", "policy": "KEEP_BY_COUNT", "policyValue": 2}]
    )
    file.write_text(FILE.replace("0.9", "0.1"))
    with pytest.raises(AirflowFailException, match=r"GuardTrippedError.*max_partition_share=0\.1"):
        run(HudiExpirePartitionsOperator, table, plan_path=plan, policy_file=str(file))


def test_policies_and_a_policy_file_are_not_given_together(table: TableBuilder, file: Path) -> None:
    with pytest.raises(AirflowFailException, match="both policies and policy_file="):
        run(HudiPlanExpiryOperator, table, policy_file=str(file), policies=[])
