"""How figures are spread: quantiles of file sizes, and skew of bytes over partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import sqrt

from airflow_hudi_maint.core.model.document import JsonObject

_DIGITS = 6
_FEW = 1000
"""Below this, a per cent of the partitions is said as their number."""


def quantile(ascending: Iterable[int], fraction: float) -> int | None:
    """The smallest value that at least ``fraction`` of the values do not exceed; None without values.

    >>> quantile((1, 2, 3, 4), 0.5), quantile((1, 2, 3, 4), 0.9), quantile((), 0.5)
    (2, 4, None)
    """
    values = tuple(ascending)
    if not values:
        return None
    rank = -(-len(values) * fraction // 1)
    return values[max(int(rank), 1) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Sizes that files have: each is the smallest which that share of the files does not exceed (p10: a tenth)."""

    min: int
    p10: int
    p25: int
    p50: int
    p75: int
    p90: int
    p99: int
    max: int

    @classmethod
    def of(cls, ascending: Sequence[int]) -> Quantiles | None:
        """The quantiles of ascending values; None without any.

        >>> Quantiles.of(range(1, 201))
        Quantiles(min=1, p10=20, p25=50, p50=100, p75=150, p90=180, p99=198, max=200)
        """
        if not ascending:
            return None

        def at(percent: int) -> int:
            return ascending[max(-(-len(ascending) * percent // 100), 1) - 1]

        return cls(min=at(0), p10=at(10), p25=at(25), p50=at(50), p75=at(75), p90=at(90), p99=at(99), max=at(100))

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """How unevenly bytes lie over partitions.

    ``gini`` is 0 where all partitions have the same bytes and comes close to 1 where one has all of them.
    ``coefficient_of_variation`` is the standard deviation over the mean (of the whole, not of a sample).
    ``top_1_percent`` is the share of all bytes, 0 to 1, that the largest 1 % of the partitions hold (at least one
    partition); 5 and 10 likewise.
    """

    gini: float
    coefficient_of_variation: float
    top_1_percent: float
    top_5_percent: float
    top_10_percent: float

    @classmethod
    def of(cls, values: Iterable[int]) -> Skew | None:
        """The skew of values that are not negative, to six digits; None where nothing is to be shared out.

        >>> Skew.of([10, 10, 10, 10])
        Skew(gini=0.0, coefficient_of_variation=0.0, top_1_percent=0.25, top_5_percent=0.25, top_10_percent=0.25)
        >>> Skew.of([0, 0, 0, 100]).gini, Skew.of([0, 0]), Skew.of([])
        (0.75, None, None)
        """
        ascending = sorted(values)
        total, count = sum(ascending), len(ascending)
        if not total:
            return None

        def top(percent: int) -> float:
            return sum(ascending[-max(-(-count * percent // 100), 1) :]) / total

        # The area below the Lorenz curve, by the sums of all beginnings: exact integers up to the last division.
        below = sum(accumulate(ascending))
        variance = count * sum(value * value for value in ascending) - total * total
        figures = {
            "gini": (count + 1 - 2 * below / total) / count,
            "coefficient_of_variation": sqrt(variance) / total,
            **{f"top_{percent}_percent": top(percent) for percent in (1, 5, 10)},
        }
        return cls(**{name: round(figure, _DIGITS) for name, figure in figures.items()})

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {name: getattr(self, name) for name in self.__slots__}

    def describe(self, *, partitions: int) -> str:
        """Say it of so many partitions; one per cent of a few is the largest one alone.

        >>> Skew.of([0, 0, 0, 100]).describe(partitions=4)
        'Gini 0.75, the largest partition holds 100 % of the bytes'
        """
        return f"Gini {self.gini:.2f}, {largest(partitions, percent=1)} {self.top_1_percent * 100:.0f} % of the bytes"


def largest(partitions: int, *, percent: int) -> str:
    """Name the largest per cent of so many partitions, at least one, by their number where they are few.

    >>> largest(4, percent=10), largest(40, percent=10), largest(5000, percent=1)
    ('the largest partition holds', 'the 4 largest partitions hold', 'the largest 1 % of partitions hold')
    """
    count = max(-(-partitions * percent // 100), 1)
    if count == 1:
        return "the largest partition holds"
    which = f"the {count} largest" if partitions < _FEW else f"the largest {percent} % of"
    return f"{which} partitions hold"
