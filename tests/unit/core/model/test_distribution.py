"""Quantiles of file sizes and skew of bytes over partitions."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.distribution import Quantiles, Skew, largest, quantile

SIZES = st.lists(st.integers(0, 10**12), min_size=1, max_size=60)


def test_nothing_has_no_distribution() -> None:
    """A table without files has no quantiles, and without bytes no skew."""
    assert Quantiles.of([]) is None
    assert Skew.of([]) is None
    assert Skew.of([0, 0, 0]) is None


def test_one_partition_holds_everything() -> None:
    """The top shares count at least one partition."""
    skew = Skew.of([7])
    assert skew == Skew(
        gini=0.0, coefficient_of_variation=0.0, top_1_percent=1.0, top_5_percent=1.0, top_10_percent=1.0
    )


def test_top_shares_are_of_the_largest() -> None:
    """One partition of a hundred with half of the bytes is 1 % with 50 %."""
    skew = Skew.of([1] * 99 + [99])
    assert skew is not None
    assert (skew.top_1_percent, skew.top_5_percent) == (0.5, round(103 / 198, 6))
    assert skew.describe(partitions=100) == "Gini 0.49, the largest partition holds 50 % of the bytes"


def test_a_per_cent_of_a_few_partitions_is_said_as_what_it_is() -> None:
    """One of four partitions is a quarter of them, and no per cent."""
    said = [largest(count, percent=1) for count in (1, 4, 150, 5000)]
    assert said == [
        "the largest partition holds",
        "the largest partition holds",
        "the 2 largest partitions hold",
        "the largest 1 % of partitions hold",
    ]


@given(values=SIZES.filter(any))
def test_gini_is_the_mean_difference_over_twice_the_mean(values: list[int]) -> None:
    """The textbook's definition, which takes every pair, gives the same."""
    skew = Skew.of(values)
    pairs = sum(abs(one - other) for one in values for other in values)
    assert skew is not None
    assert math.isclose(skew.gini, pairs / (2 * len(values) * sum(values)), abs_tol=1e-6)
    assert math.isclose(
        skew.coefficient_of_variation, statistics.pstdev(values) / statistics.fmean(values), abs_tol=2e-6
    )


@given(values=SIZES)
def test_quantiles_are_values_in_order(values: list[int]) -> None:
    """Each quantile is a size that a file has, and none is greater than the next."""
    ascending = sorted(values)
    found = Quantiles.of(ascending)
    assert found is not None
    sizes = list(found.to_json().values())
    assert sizes == sorted(sizes)  # type: ignore[type-var]
    assert set(sizes) <= set(values)
    assert (found.min, found.p50, found.p90, found.max) == (
        min(values),
        quantile(ascending, 0.5),
        quantile(ascending, 0.9),
        max(values),
    )


@pytest.mark.parametrize("scale", [1, 10**15])
def test_skew_does_not_depend_on_the_unit(scale: int) -> None:
    """Petabytes are summed up exactly."""
    assert Skew.of([1, 2, 3, 10]) == Skew.of([scale, 2 * scale, 3 * scale, 10 * scale])
