"""What an insert does to file groups is foretold as real Hudi 0.15.0, 1.0.2 and 1.2.0 did it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import Action
from airflow_hudi_maint.core.model.sizing import (
    CommitSizes,
    EstimatorRule,
    InsertPrediction,
    PartitionFiles,
    SizingSettings,
)
from airflow_hudi_maint.core.planning.sizing import predict_inserts
from airflow_hudi_maint.core.planning.sizing_estimate import average_record_size

RECORDED = Path(__file__).parents[3] / "golden" / "insert_predictions.json"
CASES = json.loads(RECORDED.read_text(encoding="utf-8"))
INSTANT = "20261130000000000"
NO_FILES: dict[str, Any] = {"slices": [], "clustering": [], "compaction": [], "groups": [0, 0]}
HANDFUL = 4
SPREAD = 5
"""Standard deviations that the records of a bucket may be off: Hudi deals keys out by their hash."""


def _name(case: dict[str, Any]) -> str:
    return f"{case['release']}-{case['history']}-{case['operation']}-{CASES.index(case)}"


def _file_slice(day: str, row: list[Any]) -> FileSlice:
    file_id, base_bytes, log_bytes, _ = row
    base = BaseFile(name=file_id, file_id=file_id, instant=INSTANT, bytes=base_bytes)
    log = LogFile(name=file_id, file_id=file_id, instant=INSTANT, version=1, write_token="", bytes=log_bytes)
    return FileSlice(
        partition_path=day,
        file_id=file_id,
        base_instant=INSTANT,
        base_file=base if base_bytes else None,
        log_files=(log,) if log_bytes else (),
    )


def _predictions(case: dict[str, Any], *, reverses_ties: bool = False) -> dict[str, InsertPrediction]:
    settings = SizingSettings.from_options(case["options"])
    commits = [
        CommitSizes(
            requested_time=row[0],
            action=Action(row[1]),
            operation=row[2],
            total_bytes=row[3],
            total_records=row[4],
            file_count=row[5],
            base_files=tuple((size, records) for size, records in row[6]),
        )
        for row in case["before"]["commits"]
    ]
    rule = EstimatorRule.of_release(case["release"])
    average = average_record_size(commits, settings=settings, rule=rule)
    predictions = {}
    for day, count in case["inserts"].items():
        found = case["before"]["partitions"].get(day) or NO_FILES
        files = PartitionFiles(
            partition_path=day,
            slices=tuple(_file_slice(day, row) for row in found["slices"]),
            clustering=frozenset(found["clustering"]),
            compaction=frozenset(found["compaction"]),
            base_group_count=found["groups"][0],
            group_count=found["groups"][1],
            listing_order=_listing(found, reverses_ties=reverses_ties),
        )
        predictions[day] = predict_inserts(
            files,
            inserts=count,
            settings=settings,
            average=average,
            is_merge_on_read=case["merge_on_read"],
            operation=case["operation"],
        )
    return predictions


def _hudi(case: dict[str, Any], day: str) -> tuple[dict[str, int], dict[str, int]]:
    """Records added to file groups of before, and records of new ones, by what Hudi calls a bucket.

    A bucket whose records outgrow the largest file goes on in a second one of the same prefix.
    """
    partition = case["before"]["partitions"].get(day, {"slices": []})
    before = {row[0]: row[3] or 0 for row in partition["slices"]}
    grown, new = {}, {}
    for file_id, records, _ in case["written"][day]:
        if file_id in before:
            grown[file_id] = records - before[file_id]
        else:
            prefix = file_id.rpartition("-")[0]
            new[prefix] = new.get(prefix, 0) + records
    return grown, new


def _listing(found: dict[str, Any], *, reverses_ties: bool) -> tuple[str, ...]:
    """File ids as the disk listed them; where that was not recorded, by name or the other way round."""
    names = sorted((row[0] for row in found["slices"]), reverse=reverses_ties)
    return tuple(found.get("listing") or names)


def _agrees(predicted: InsertPrediction, case: dict[str, Any], day: str) -> bool:
    """Whether the same file groups grew and as many are new; a bucket of a handful of records may have got none."""
    grown, new = _hudi(case, day)
    foretold = {one.file_id for one in predicted.grown if one.records > HANDFUL or one.file_id in grown}
    sure = sum(one.records > HANDFUL for one in predicted.new)
    return foretold == set(grown) and sure <= len(new) <= len(predicted.new)


def _distance(predicted: InsertPrediction, case: dict[str, Any], day: str) -> int:
    """By how many records the file groups that were there before got more or fewer than foretold."""
    grown, _ = _hudi(case, day)
    foretold = {one.file_id: one.records for one in predicted.grown}
    return sum(abs(grown.get(one, 0) - foretold.get(one, 0)) for one in grown.keys() | foretold.keys())


def _agreeing(case: dict[str, Any]) -> dict[str, InsertPrediction]:
    """The predictions in the order of the disk's listing: what two file ids of one hash bucket depend on."""
    plain, reverse = _predictions(case), _predictions(case, reverses_ties=True)
    return {day: min((plain[day], reverse[day]), key=lambda one: _distance(one, case, day)) for day in plain}


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_the_same_file_groups_grow_and_as_many_are_new(case: dict[str, Any]) -> None:
    """For every partition of a real insert, by release, table type, history and settings."""
    for day, predicted in _agreeing(case).items():
        assert _agrees(predicted, case, day), (day, predicted, _hudi(case, day))


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_records_are_dealt_out_as_foretold(case: dict[str, Any]) -> None:
    """Each bucket gets the records foretold, within what the hash of keys scatters."""
    for day, predicted in _agreeing(case).items():
        grown, new = _hudi(case, day)
        for one in predicted.grown:
            allowed = SPREAD * max(one.records, 1) ** 0.5
            assert grown.get(one.file_id, 0) == pytest.approx(one.records, abs=allowed), (day, one.file_id)
        got = sorted([*new.values(), *[0] * (len(predicted.new) - len(new))])
        for expected, actual in zip(sorted(one.records for one in predicted.new), got, strict=True):
            assert actual == pytest.approx(expected, abs=SPREAD * max(expected, 1) ** 0.5), day


def test_the_table_of_cases_is_wide() -> None:
    """At least thirty cases over three releases and both table types, in which every setting differs somewhere."""
    assert len(CASES) >= 30
    assert {case["release"] for case in CASES} == {"0.15.0", "1.0.2", "1.2.0"}
    for release in ("0.15.0", "1.0.2", "1.2.0"):
        assert {case["merge_on_read"] for case in CASES if case["release"] == release} == {True, False}


@pytest.mark.parametrize(
    "key",
    [
        "hoodie.parquet.max.file.size",
        "hoodie.parquet.small.file.limit",
        "hoodie.copyonwrite.insert.split.size",
        "hoodie.copyonwrite.insert.auto.split",
        "hoodie.copyonwrite.record.size.estimate",
        "hoodie.record.size.estimation.threshold",
        "hoodie.merge.small.file.group.candidates.limit",
    ],
)
def test_every_setting_matters(key: str) -> None:
    """A case that holds with a setting would fail without it, in at least one case for each setting."""
    matters = False
    for case in CASES:
        if key not in case["options"]:
            continue
        without = {**case, "options": {name: value for name, value in case["options"].items() if name != key}}
        agree = (_agrees(predicted, case, day) for day, predicted in _agreeing(without).items())
        matters |= not all(agree)
    assert matters
