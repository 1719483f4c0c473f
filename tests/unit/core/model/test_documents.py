from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import CorruptTableError, InvalidSettingError
from airflow_hudi_maint.core.model.plan import ClusteringPlan, ClusteringSettings, ExpiryPlan, Layout, PlanBasis
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.model.report import Outcome, Step, StepReport
from airflow_hudi_maint.core.model.statistics import TableStatistics, quantile
from tests.property import strategies as tables

REPORT = StepReport(
    step=Step.EXPIRE,
    outcome=Outcome.DONE,
    message="dropped 1 partition",
    base_path="/lake/trips",
    base_instant="20261130000000000",
    instants=("20261130010000000",),
    partitions=("day=1",),
    files_before=3,
    bytes_before=30,
    engine_seconds=1.5,
    warnings=("w",),
)
EXPIRY = ExpiryPlan(basis=tables.basis(), policies=PolicySet(), entries=())
CLUSTERING = ClusteringPlan(basis=tables.basis(), settings=ClusteringSettings(), entries=())
STATISTICS = tables.table([])
Reader = Callable[..., object]
ROW: dict[str, object] = {
    "partition": "day=1",
    "decision": "keep",
    "reason": "",
    "policy": None,
    "last_modified_instant": "",
    "bytes": 0,
    "data_files": 0,
    "log_files": 0,
    "blocked_by": None,
}
"""The least that a row of an expiry plan has."""
DOCUMENTS = pytest.mark.parametrize(
    ("document", "read"),
    [
        (REPORT.to_json(), StepReport.from_json),
        (EXPIRY.to_json(), ExpiryPlan.from_json),
        (CLUSTERING.to_json(), ClusteringPlan.from_json),
        (STATISTICS.to_json(), TableStatistics.from_json),
    ],
    ids=["report", "expiry", "clustering", "statistics"],
)


def test_a_report_survives_json() -> None:
    """A report that is written and read again is the same report."""
    assert REPORT == StepReport.from_json(json.loads(json.dumps(REPORT.to_json())), name="report.json")


@given(rows=tables.schemes().flatmap(tables.partitions))
def test_statistics_survive_json(rows: list) -> None:  # type: ignore[type-arg]
    """Statistics that are written and read again are the same statistics."""
    statistics = tables.table(rows)
    assert statistics == TableStatistics.from_json(json.loads(json.dumps(statistics.to_json())), name="s.json")


@given(settings=tables.clustering_settings())
def test_settings_survive_json(settings: ClusteringSettings) -> None:
    """Settings that are written and read again are the same settings."""
    assert settings == ClusteringSettings.from_json(json.loads(json.dumps(settings.to_json())))


def test_a_basis_survives_json() -> None:
    """The state that a plan rests on is written with it."""
    assert tables.basis() == PlanBasis.from_json(json.loads(json.dumps(tables.basis().to_json())))


@DOCUMENTS
def test_another_kind_of_document_is_refused(document: dict[str, object], read: Reader) -> None:
    """A document of another kind is refused by the file's name and both kinds."""
    with pytest.raises(CorruptTableError, match=r"x\.json is a 'shopping-list'"):
        read({**document, "kind": "shopping-list"}, name="x.json")


@DOCUMENTS
def test_another_version_of_a_document_is_refused(document: dict[str, object], read: Reader) -> None:
    """A version that is not known is refused by number."""
    with pytest.raises(CorruptTableError, match=r"version 99; this package reads .* version \d"):
        read({**document, "version": 99}, name="x.json")


@DOCUMENTS
@pytest.mark.parametrize("value", [None, [], "text"])
def test_what_is_no_object_is_refused(document: dict[str, object], read: Reader, value: object) -> None:
    """A file with other JSON is no document."""
    del document
    with pytest.raises(CorruptTableError, match="no JSON object"):
        read(value, name="x.json")


@DOCUMENTS
def test_a_document_that_lacks_something_is_refused(document: dict[str, object], read: Reader) -> None:
    """Each key is needed: without one the file is called broken, whatever the key."""
    computed = {"kind", "version", "summary", "totals", "file_bytes", "skew"}
    since_then = {"quiet_seconds", "previous_expired", "has_table_policies"}  # plans of the first release lack them
    for key in document.keys() - computed - since_then:
        with pytest.raises(CorruptTableError, match="broken"):
            read({name: value for name, value in document.items() if name != key}, name="x.json")


def test_a_plan_with_an_unknown_decision_is_broken() -> None:
    """A decision that is not known is not guessed."""
    with pytest.raises(CorruptTableError, match="explode"):
        ExpiryPlan.from_json({**EXPIRY.to_json(), "entries": [{**ROW, "decision": "explode"}]}, name="x.json")


@pytest.mark.parametrize(
    "change",
    [
        {"clock": "moon"},
        {"clock": None},
        {"quiet_seconds": "7"},
        {"quiet_seconds": math.nan},
        {"previous_expired": "3"},
        {"previous_expired": True},
        {"warnings": [1]},
        {"entries": [ROW, ROW]},
        {"entries": ["day=1"]},
        *({"entries": [{**ROW, "partition": one}]} for one in (5, None)),
        *({"entries": [{**ROW, "bytes": one}]} for one in ("1", -1, True, 1.5, None)),
        *({"entries": [{**ROW, "records": one}]} for one in ("9", -5)),
        {"entries": [{**ROW, "data_files": None}]},
        {"entries": [{**ROW, "reason": None}]},
    ],
)
def test_a_plan_that_was_edited_into_nonsense_is_broken(change: dict[str, object]) -> None:
    """A figure that is none would trip no guard, and a partition that stands there twice would count twice."""
    with pytest.raises(CorruptTableError, match="broken"):
        ExpiryPlan.from_json({**EXPIRY.to_json(), **change}, name="x.json")


@pytest.mark.parametrize(
    ("given_settings", "shown"),
    [
        ({"target_file_bytes": 10, "small_file_bytes": 10}, "target_file_bytes=10 is not above small_file_bytes=10"),
        ({"target_file_bytes": 10, "small_file_bytes": 5, "max_group_bytes": 9}, "max_group_bytes=9 is below"),
        ({"max_groups": 0}, "max_groups=0"),
        ({"min_input_files": 0}, "min_input_files=0"),
        ({"small_file_bytes": 0}, "small_file_bytes=0"),
        ({"layout": Layout.ZORDER}, "layout=zorder needs sort_columns"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given_settings: dict[str, object], shown: str) -> None:
    """The error has both figures."""
    with pytest.raises(InvalidSettingError) as raised:
        ClusteringSettings(**given_settings)  # type: ignore[arg-type]
    assert shown in str(raised.value)


def test_totals_of_statistics() -> None:
    """The totals add up, and quantiles are sizes that a file has."""
    totals = tables.table(
        [tables.partition(f"day={size}", instant="20261130000000000", total_bytes=size) for size in (10, 20, 300)]
    ).totals()
    expected = {
        "partitions": 3,
        "file_groups": 3,
        "data_files": 3,
        "small_files": 2,
        "log_files": 0,
        "records": None,
        "bytes": 330,
        "median_file_bytes": 20,
        "p90_file_bytes": 300,
    }
    assert expected == totals


@given(values=st.lists(st.integers(0, 50), min_size=1), fraction=st.sampled_from([0.1, 0.5, 0.9]))
def test_a_quantile_is_not_exceeded_by_its_share(values: list[int], fraction: float) -> None:
    """At least that share of the values is no greater, and no smaller value has that."""
    ordered = sorted(values)
    found = quantile(ordered, fraction)
    assert found is not None
    assert sum(value <= found for value in values) >= fraction * len(values)
    assert sum(value < found for value in values) < fraction * len(values) or found == ordered[0]
