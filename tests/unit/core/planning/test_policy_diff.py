from __future__ import annotations

from airflow_hudi_maint.core.planning.policy_diff import diff_policies
from tests.unit.core.planning.builders import policies


def test_policies_are_compared_by_spec() -> None:
    """What comes, goes and changes has a line each, in the order of the specs."""
    before = policies(
        "a=1/ KEEP_BY_TIME 3", "a=2/ KEEP_BY_TIME 3", "a=3/ KEEP_BY_TIME 3", "default a=*/ KEEP_BY_TIME 9"
    )
    after = policies(
        "a=1/ KEEP_BY_TIME 3", "a=2/ KEEP_BY_TIME 3 clock=created", "a=4/ KEEP_BY_SIZE 3", "default / KEEP_BY_TIME 9"
    )
    diff = diff_policies(before, after)
    assert (
        "~ KEEP_BY_TIME 9 on a=*/ (default) → KEEP_BY_TIME 9 on / (default)",
        "~ KEEP_BY_TIME 3 on a=2/ → KEEP_BY_TIME 3 on a=2/ by created",
        "- KEEP_BY_TIME 3 on a=3/",
        "+ KEEP_BY_SIZE 3 on a=4/",
    ) == diff.lines()
    assert ["a=1/"] == [str(one.spec) for one in diff.unchanged]
    assert diff_policies(after, after).is_empty


def test_options_show() -> None:
    """A policy that differs by an option of ours only is shown with it."""
    diff = diff_policies(policies("a=1/ KEEP_BY_TIME 3"), policies("a=1/ KEEP_BY_TIME 3 allowEmptying"))
    assert ("~ KEEP_BY_TIME 3 on a=1/ → KEEP_BY_TIME 3 on a=1/, allowEmptying=True",) == diff.lines()
