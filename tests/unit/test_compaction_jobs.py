"""The job scripts of compaction and of rolling back pending plans, with a Spark and a Hudi that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.model.document import Json
from airflow_hudi_maint.core.model.job import JobKind
from tests.unit.job_scripts import Ran, request

INSTANT = "20261130120000000"


def test_scheduling_goes_by_the_options_of_the_session(tmp_path: Path) -> None:
    """The procedure's own options would split a chain of strategies at its commas."""
    asked = request(JobKind.SCHEDULE_COMPACTION, options={"hoodie.compaction.strategy": "a.B,c.D"})
    ran = Ran(asked, tmp_path=tmp_path, script="schedule_compaction")
    assert (ran.code, ran.report.ok) == (0, True)
    assert ran.calls == [
        "set hoodie.write.table.version 6",
        "set hoodie.compaction.strategy a.B,c.D",
        r"sql CALL run_compaction(path => '/lake/o\'trips', op => 'schedule')",
        "unset hoodie.write.table.version",
        "unset hoodie.compaction.strategy",
        "stop",
    ]


def test_the_named_instants_are_executed_and_no_other(tmp_path: Path) -> None:
    """None is an error: Hudi would execute every pending plan."""
    asked = request(JobKind.EXECUTE_COMPACTION, instants=[INSTANT])
    ran = Ran(asked, tmp_path=tmp_path, script="execute_compaction")
    call = rf"CALL run_compaction(path => '/lake/o\'trips', op => 'execute', instants => '{INSTANT}')"
    assert (ran.code, ran.said("sql")) == (0, [call])


@pytest.mark.parametrize("instants", [[], ["all"]])
def test_executing_everything_by_accident_is_refused(tmp_path: Path, instants: list[Json]) -> None:
    """Nothing reaches Hudi."""
    ran = Ran(request(JobKind.EXECUTE_COMPACTION, instants=instants), tmp_path=tmp_path, script="execute_compaction")
    assert (ran.code, ran.report.ok, ran.said("sql")) == (1, False, [])


def test_pending_plans_are_rolled_back_newest_first(tmp_path: Path) -> None:
    """Only what is pending as a plan: a write of that time is not touched, and what is gone is no error."""
    older, write, gone = "20261130110000000", "20261130115900000", "20261130115800000"
    pending = [[INSTANT, "compaction"], [older, "replacecommit"], [write, "deltacommit"]]
    asked = request(JobKind.ROLLBACK_PENDING, instants=[older, INSTANT, write, gone])
    ran = Ran(asked, tmp_path=tmp_path, script="rollback_pending", hudi={"pending": pending})
    assert (ran.code, ran.report.error_message) == (0, None)
    assert [row["instant"] for row in ran.report.rows] == [INSTANT, older]
    assert ran.said("rollback") == [f'"java" "20261130130000000" "{one}" true false' for one in (INSTANT, older)]
    assert ran.said("close") == [""]


def test_a_rollback_that_an_earlier_try_began_is_gone_on_with(tmp_path: Path) -> None:
    """Under its own instant: a second one would stay pending."""
    begun = "20261130125900000"
    asked = request(JobKind.ROLLBACK_PENDING, instants=[INSTANT])
    hudi: dict[str, Json] = {"pending": [[INSTANT, "clustering"]], "begun": begun}
    ran = Ran(asked, tmp_path=tmp_path, script="rollback_pending", hudi=hudi)
    assert ran.report.rows == ({"instant": INSTANT, "rollback": begun},)
    assert ran.said("rollback") == [f'"java" "{begun}" "{INSTANT}" true false']


def test_no_instant_to_roll_back_is_refused(tmp_path: Path) -> None:
    """It never means all."""
    ran = Ran(request(JobKind.ROLLBACK_PENDING, instants=[]), tmp_path=tmp_path, script="rollback_pending")
    assert (ran.code, "No instant is named" in str(ran.report.error_message)) == (1, True)
