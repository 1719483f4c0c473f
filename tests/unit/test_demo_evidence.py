"""The demo says that it failed whenever the table does not bear out its claims."""

from __future__ import annotations

from dataclasses import replace

import pytest

from demo.evidence import Evidence, ReplaceCommit, find_problems
from demo.snapshot import PartitionSnapshot, Snapshot
from demo.summary import render_summary

JANUARY, FEBRUARY, MARCH = (f"origin=EWR/month={month}" for month in (1, 2, 3))


def partition(*, files: int, rows: int) -> PartitionSnapshot:
    return PartitionSnapshot(file_groups=files, file_bytes=(1024,) * files, rows=rows)


def snapshot(**partitions: PartitionSnapshot) -> Snapshot:
    months = {"january": JANUARY, "february": FEBRUARY, "march": MARCH}
    named = {months[name]: one for name, one in partitions.items()}
    return Snapshot(as_of_instant="20261130000000000", partitions=named, stored_bytes=(1024,) * 12)


@pytest.fixture
def evidence() -> Evidence:
    """January expired, February and March were clustered from four files each to one."""
    four = partition(files=4, rows=100)
    one = partition(files=1, rows=100)
    return Evidence(
        before=snapshot(january=four, february=four, march=four),
        after=snapshot(february=one, march=one),
        replace_commits=(
            ReplaceCommit(instant="20261130000001000", operation="DELETE_PARTITION", partitions=frozenset({JANUARY})),
            ReplaceCommit(instant="20261130000002000", operation="CLUSTER", partitions=frozenset({FEBRUARY, MARCH})),
        ),
        pending=(),
        policies={JANUARY: "KEEP_BY_COUNT 2 on origin=*/ (default)"},
        left_out={},
    )


def test_a_run_that_did_what_it_planned_has_no_problem(evidence: Evidence) -> None:
    assert find_problems(evidence) == ()


def test_an_expiry_that_the_timeline_does_not_confirm_is_a_problem(evidence: Evidence) -> None:
    problems = find_problems(replace(evidence, replace_commits=evidence.replace_commits[1:]))
    assert [text for text in problems if text.startswith("the timeline confirms the expiry of []")]


def test_a_partition_that_went_without_being_planned_is_a_problem(evidence: Evidence) -> None:
    problems = find_problems(replace(evidence, policies={}))
    assert [text for text in problems if text.startswith("the plan lets [] expire")]


def test_no_expiry_at_all_is_a_problem(evidence: Evidence) -> None:
    after = replace(evidence.after, partitions={**evidence.after.partitions, JANUARY: partition(files=1, rows=100)})
    assert "no partition expired" in find_problems(replace(evidence, after=after))


def test_a_partition_that_was_left_out_of_clustering_silently_is_a_problem(evidence: Evidence) -> None:
    half = replace(evidence.replace_commits[1], partitions=frozenset({FEBRUARY}))
    silent = replace(evidence, replace_commits=(evidence.replace_commits[0], half))
    assert f"neither clustered nor named with a reason: {MARCH}" in find_problems(silent)
    assert find_problems(replace(silent, left_out={MARCH: "one file only"})) == ()


def test_no_completed_clustering_is_a_problem(evidence: Evidence) -> None:
    problems = find_problems(replace(evidence, replace_commits=evidence.replace_commits[:1]))
    assert "the timeline shows no completed clustering" in problems


def test_something_left_pending_is_a_problem(evidence: Evidence) -> None:
    problems = find_problems(replace(evidence, pending=("20261130000003000 (clustering, inflight)",)))
    assert problems == ("left pending on the timeline: 20261130000003000 (clustering, inflight)",)


def test_rows_that_moved_between_partitions_are_a_problem_although_the_sum_is_right(evidence: Evidence) -> None:
    after = snapshot(february=partition(files=1, rows=99), march=partition(files=1, rows=101))
    problems = find_problems(replace(evidence, after=after))
    assert problems == (f"{FEBRUARY} had 100 rows and has 99", f"{MARCH} had 100 rows and has 101")


def test_a_lost_row_is_a_problem(evidence: Evidence) -> None:
    after = snapshot(february=partition(files=1, rows=100), march=partition(files=1, rows=99))
    assert "200 rows should be left, and 199 are" in find_problems(replace(evidence, after=after))


def test_the_summary_shows_figures_instants_and_places(evidence: Evidence) -> None:
    lines = render_summary(evidence, places={"report": "reports/r.html", "plans": "plans"}).splitlines()
    assert [line.split() for line in lines if line.startswith(("partitions", "rows  "))] == [
        ["partitions", "3", "2", "-33", "%"],
        ["rows", "300", "200", "-33", "%"],
    ]
    assert "expired: 1 of 3 partitions, replace commit 20261130000001000 (DELETE_PARTITION)" in lines
    assert f"  by KEEP_BY_COUNT 2 on origin=*/ (default): {JANUARY} (100 rows, 4 KiB)" in lines
    assert "clustered: 2 of 2 partitions, replace commit 20261130000002000 (CLUSTER)" in lines
    assert "not counted: 10 replaced files, 10 KiB, on storage until Hudi's cleaner removes them" in lines
    assert lines[-2:] == ["report  reports/r.html", "plans   plans"]


def test_the_summary_names_what_was_left_out_and_why(evidence: Evidence) -> None:
    half = replace(evidence.replace_commits[1], partitions=frozenset({FEBRUARY}))
    partly = replace(
        evidence, replace_commits=(evidence.replace_commits[0], half), left_out={MARCH: "one file, nothing to merge"}
    )
    assert f"  left out: {MARCH}: one file, nothing to merge" in render_summary(partly, places={"report": "r"})
