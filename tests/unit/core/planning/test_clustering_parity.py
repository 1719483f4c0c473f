"""Our clustering plans against those that three releases of Hudi made of the same tables, without a JVM.

``tests/golden/clustering_plans.py`` asked Hudi.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.plan import Decision
from tests.golden.clustering_cases import CASES, RELEASES, Case, answers, make_table
from tests.golden.clustering_ours import comparable, files, our_groups, our_plan, packed, slices_of

_BY_NAME = {case.name: case for case in CASES}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Path]:
    """Tables that were made already, by release, type and state."""
    made: dict[tuple[str, str, str], Path] = {}
    return made


@pytest.mark.parametrize("key", sorted(answers()))
def test_groups_are_those_of_hudi(
    key: str, tables: dict[tuple[str, str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Our groups are Hudi's; where only Hudi plans them, a plan holds the partition or no files become fewer."""
    release, table_type, name = key.split("/", 2)
    case: Case = _BY_NAME[name]
    where = (release, table_type, case.table)
    if where not in tables:
        tables[where] = make_table(
            case.table, release=release, table_type=table_type, folder=tmp_path_factory.mktemp("tables")
        )
    path, answer = tables[where], answers()[key]
    plan = our_plan(case, path=path, release=release, hour=answer.get("hour", 0))
    ours, theirs = our_groups(plan), dict(answer["groups"])
    if case.is_capped:
        assert (answer["partitions"], answer["limit"]) == (sorted(ours), plan.group_limit)
    decisions = {entry.partition_path: entry.decision for entry in plan.entries}
    slices = slices_of(path)
    for only in set(theirs) - set(ours):
        taken, made = files(theirs[only])
        assert decisions[only] is Decision.BLOCKED or taken <= made, f"{only}: {theirs[only]}"
        ours[only] = packed(slices[only], plan.settings)
    assert comparable(ours, slices) == comparable(theirs, slices)


def test_hudi_was_asked_enough() -> None:
    """Every case is answered for each release and type, and most answers have groups."""
    assert len(answers()) == sum(len(case.types) for case in CASES) * len(RELEASES)
    assert sum(bool(answer["groups"]) for answer in answers().values()) >= 120
