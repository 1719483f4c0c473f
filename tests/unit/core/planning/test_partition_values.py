from __future__ import annotations

import pytest

from airflow_hudi_maint.core.planning.partition_values import order_values


def ordered(*values: str, field_type: str | None) -> list[str]:
    keys = order_values(values, field="f", field_type=field_type).keys
    return sorted(keys, key=keys.__getitem__)


@pytest.mark.parametrize(
    ("field_type", "expected"),
    [
        ("int", ["-3", "9", "10"]),
        ("long", ["9", "099", "100"]),
        ("double", ["-0.5", "9", "10.25", "1e3"]),
        ("decimal", ["0.1", "0.10", "2"]),
        ("boolean", ["false", "true"]),
        ("date", ["2025-12-31", "2026-1-2", "2026-01-10"]),
        ("date", ["2025/12/31", "2026/1/2", "2026/01/10"]),
        ("date", ["9", "20000"]),
        ("timestamp", ["2026-01-02 09:00:00", "2026-01-02T10:00:00.5", "2026-01-02 10:00:01.0"]),
        ("timestamp-micros", ["2026-01-02T23:30:00+09:00", "2026-01-02 15:00:00"]),
        ("timestamp", ["999", "1000"]),
        ("string", ["10", "9", "a"]),
        ("bytes", ["10", "9"]),
        (None, ["9", "10"]),
        (None, ["10", "9", "a"]),
    ],
)
def test_values_compare_by_their_type(field_type: str | None, expected: list[str]) -> None:
    """Numbers compare as numbers, dates as dates, everything else as text."""
    assert expected == ordered(*reversed(expected), field_type=field_type)


def test_equal_values_are_ordered_by_their_text() -> None:
    """The order of a listing never decides."""
    assert (
        ["009", "09", "9"] == ordered("9", "009", "09", field_type="int") == ordered("09", "9", "009", field_type="int")
    )


@pytest.mark.parametrize(
    ("field_type", "good", "stray"),
    [
        ("int", "1", "1.5"),
        ("int", "1", "\N{ARABIC-INDIC DIGIT ONE}"),
        ("double", "1", "NaN"),
        ("decimal", "1", "Infinity"),
        ("boolean", "true", "yes"),
        ("date", "2026-01-02", "2026-02-30"),
        ("date", "2026-01-02", "20000"),
        ("timestamp", "2026-01-02", "noon"),
    ],
)
def test_a_value_of_another_type_has_no_place(field_type: str, good: str, stray: str) -> None:
    """A value that is none of the field's type is set apart and named in a warning."""
    order = order_values([good, stray], field="f", field_type=field_type)
    assert ({good}, {stray}) == (set(order.keys), set(order.strays))
    assert repr(stray) in order.warnings[0]


def test_values_that_are_all_of_another_type_compare_as_text() -> None:
    """A key generator may write a long as a date: then the text decides, and a warning says so."""
    order = order_values(["2026-01-03", "2026-01-02"], field="ts", field_type="long")
    expected = (
        "no value of partition field 'ts' is one of numbers, which its type long asks for: the values compare as text: "
        "'2026-01-02', '2026-01-03'"
    )
    assert (expected,) == order.warnings
    assert (frozenset(), "text") == (order.strays, order.compared_as)
