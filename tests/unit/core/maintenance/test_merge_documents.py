"""What a merge of plain files writes beside them: its plans and reports, how long they stay, when there are none."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import DocumentNotFoundError, InvalidSettingError
from airflow_hudi_maint.core.maintenance.merge_planning import plan_merge, read_merge_plan
from airflow_hudi_maint.core.maintenance.merge_workspace import open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import merge_small_files
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.report import Outcome
from tests.unit.core.maintenance.plain_files import NOW, SETTINGS, STATE, fill, merge, names, seen


def test_a_run_without_anything_to_do_leaves_nothing_behind(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "sub/b.csv": b"1\n"})
    report = merge(workspace)

    assert Outcome.NOTHING_TO_DO == report.outcome
    assert ["a.csv", "sub"] == names(root)


def test_a_dry_run_writes_a_plan_and_a_report_alone(root: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    before = seen(root)
    report = merge(workspace, dry_run=True)

    assert before == seen(root)
    assert ["plans", "reports"] == sorted(names(root / STATE))
    assert (Outcome.DRY_RUN, "Dry run: 2 files would become 1; nothing was changed") == (report.outcome, report.message)


def test_a_plan_belongs_to_its_directory_and_has_its_own_settings(root: Path, tmp_path: Path) -> None:
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    path = plan_merge(workspace, now=NOW, settings=SETTINGS).path
    other = fill(tmp_path / "other", {"a.csv": b"1\n"})
    with pytest.raises(InvalidSettingError, match="settings were given beside a plan"):
        merge_small_files(workspace, now=NOW, settings=SETTINGS, plan_path=path)
    with pytest.raises(DocumentNotFoundError):
        read_merge_plan(other, path)
    copied = tmp_path / "other" / STATE / "plans"
    copied.mkdir(parents=True)
    (copied / "p.json").write_bytes(Path(path).read_bytes())
    with pytest.raises(InvalidSettingError, match=f"is a plan for {root}, not for {tmp_path}/other"):
        read_merge_plan(other, str(copied / "p.json"))


def test_plans_and_reports_may_lie_elsewhere(root: Path, tmp_path: Path) -> None:
    fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    with pytest.raises(InvalidSettingError, match="among its files"):
        open_merge_workspace(str(root), documents_location=str(root / "docs"))
    workspace = open_merge_workspace(str(root), documents_location=str(tmp_path / "docs"))
    report = merge(workspace)

    assert report.plan_path.startswith(f"{tmp_path}/docs/lake-")
    assert {"plans", "reports"}.isdisjoint(names(root / STATE))


def everything(root: Path) -> dict[str, bytes]:
    """All files, ours included."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def test_a_run_with_nothing_to_do_writes_nothing(root: Path) -> None:
    """Neither a plan nor a report: it may run each hour, for years. Not while there is trash, either."""
    workspace = fill(root, {"a.csv": b"1\n", "d/x.csv": b"9\n", "b.csv": b"2\n"})
    merge(workspace)
    before = everything(root)
    report = merge(workspace, now=NOW + timedelta(hours=1))

    assert ("nothing-to-do", None) == (str(report.outcome), report.plan_path)
    assert before == everything(root)


def test_trash_that_was_promised_longer_makes_no_work(root: Path) -> None:
    """A run whose own trash days are fewer neither deletes it nor writes that it did nothing."""
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    merge(workspace, replace(SETTINGS, trash_days=30))
    before = everything(root)
    assert (
        Outcome.NOTHING_TO_DO == merge(workspace, replace(SETTINGS, trash_days=2), now=NOW + timedelta(days=9)).outcome
    )
    assert before == everything(root)

    assert 1 == len(merge(workspace, replace(SETTINGS, trash_days=2), now=NOW + timedelta(days=30)).purged)


@pytest.mark.parametrize(("trash_days", "kept_days"), [(0, 7), (7, 7), (30, 30)])
def test_plans_are_kept_as_long_as_trash_and_a_week_at_least(root: Path, trash_days: int, kept_days: int) -> None:
    """A dry run may wait for an approval; documents of others, and what is no name of ours, stay."""
    settings = MergeSettings(csv_header="no", trash_days=trash_days)
    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n"})
    others = root / STATE / "plans"
    fill(others, {"20000101T000000Z-clustering-0a.json": b"{}", "x-merge-1.json": b"{}"})
    first = Path(plan_merge(workspace, now=NOW, settings=settings).path)
    plan_merge(workspace, now=NOW + timedelta(days=kept_days, seconds=-1), settings=settings)
    assert first.exists()
    plan_merge(workspace, now=NOW + timedelta(days=kept_days), settings=settings)

    assert not first.exists()
    assert 2 + 2 == len([*others.iterdir()])


def test_an_error_that_is_none_of_ours_still_leaves_a_report(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was merged before a bug showed is told, and the bug is raised as it is."""
    from airflow_hudi_maint.core.merging import verification

    workspace = fill(root, {"a.csv": b"1\n", "b.csv": b"2\n", "z/a.json": b"{}\n", "z/b.json": b"{}\n"})
    real = verification.verify_text

    def verify(storage: Any, path: str, **options: Any) -> None:
        if b"{}" in storage.read_bytes(path):
            raise ZeroDivisionError("a bug")
        real(storage, path, **options)

    monkeypatch.setattr(verification, "verify_text", verify)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        merge(workspace, MergeSettings(csv_header="no", parallel_groups=1))

    (report,) = (json.loads(path.read_text()) for path in (root / STATE / "reports").iterdir())
    assert ("failed", 1) == (report["outcome"], report["groups"])
    assert "ZeroDivisionError: a bug" in report["message"]
    assert [] == list((root / STATE / "staging").iterdir())
