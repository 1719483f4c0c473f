from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.planning.policy_match import PolicyMatcher, match_policy
from tests.unit.core.planning.builders import policies


def test_the_policy_that_names_more_values_wins() -> None:
    """Among explicit policies the one with more literal values decides; the others are listed with the reason."""
    by = policies("a=*/ KEEP_BY_TIME 3", "a=1/b=2/ KEEP_BY_TIME 1", "a=1/ KEEP_BY_TIME 2", "default / KEEP_BY_TIME 4")
    match = match_policy(("1", "2", "3"), by)
    assert match.explanations() == (
        "KEEP_BY_TIME 1 on a=1/b=2/ decides",
        "KEEP_BY_TIME 2 on a=1/ loses: its spec names fewer values (1 against 2)",
        "KEEP_BY_TIME 3 on a=*/ loses: its spec names fewer values (0 against 2)",
        "KEEP_BY_TIME 4 on / (default) loses: an explicit policy beats the default one",
    )


def test_an_explicit_policy_beats_a_default_that_names_more() -> None:
    """The default policy is for partitions that no explicit one covers."""
    match = match_policy(("1",), policies("default a=1/ KEEP_BY_TIME 1", "a=*/ KEEP_BY_TIME 2"))
    assert match.winner is not None
    assert match.winner.value == 2


def test_a_partition_that_nothing_covers_says_so() -> None:
    """Without a policy there is no winner."""
    match = match_policy(("2",), policies("a=1/ KEEP_BY_TIME 1"))
    assert (None, (), ("no policy covers it",)) == (match.winner, match.losers, match.explanations())


def test_a_spec_does_not_cover_a_shorter_path() -> None:
    """A partition with fewer values than the spec has levels does not lie under it."""
    assert match_policy(("1",), policies("a=1/b=2/ KEEP_BY_TIME 1")).winner is None


@pytest.mark.parametrize(
    ("first", "second"),
    [("a=1/", "a=1/b=*/"), ("a=1/b=*/", "a=*/b=2/"), ("/", "a=*/"), ("a=1/b=*/c=3/", "a=1/b=2/")],
)
def test_policies_that_could_both_win_are_refused(first: str, second: str) -> None:
    """Equally many values, and a partition that both cover: the error names both policies."""
    with pytest.raises(InvalidPolicyError, match="could both win") as raised:
        PolicyMatcher.of(policies(f"{first} KEEP_BY_TIME 1", f"{second} KEEP_BY_TIME 2"))
    assert f"KEEP_BY_TIME 1 on {first}'" in str(raised.value)
    assert f"KEEP_BY_TIME 2 on {second}'" in str(raised.value)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a=1/", "a=2/"), ("a=1/", "a=*/"), ("a=1/b=*/", "a=2/"), ("a=1/b=*/c=3/", "a=2/b=2/")],
)
def test_policies_that_never_meet_are_accepted(first: str, second: str) -> None:
    """Specs of different values, or of a different number of them, do not compete."""
    by = policies(f"{first} KEEP_BY_TIME 1", f"{second} KEEP_BY_TIME 2")
    assert PolicyMatcher.of(by).default is None


def test_no_policies_cover_nothing() -> None:
    """An empty set matches no partition."""
    assert match_policy((), PolicySet()).winner is None
