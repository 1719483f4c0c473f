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
        ("string", ["1", "2", "a"]),
        ("string", ["20261128", "2026-11-29", "2026/11/30", "2026-12-1"]),
        ("string", ["20261129", "20261130", "202612"]),
        ("date", ["2026-11-28", "20261129", "2026-12-01"]),
        ("long", ["10122011", "20101212"]),
        ("string", ["8", "9", "10", "11"]),
        ("string", ["08", "9", "010"]),
        ("string", ["2026-1-2", "2026-01-10"]),
        ("string", ["1.10", "1.9"]),
        ("bytes", ["9", "10"]),
        ("decimal(10,2)", ["9.5", "10.25"]),
        ("timestamp-micros", ["2026-11-30", "2026-11-30 10:00:00.0"]),
        ("timestamp-micros", ["2026-9", "2026-11"]),
        ("timestamp-millis", ["2026-11-30-9", "2026-11-30-10"]),
        ("local-timestamp-micros", ["2026/11/29/23", "2026/11/30/01"]),
        ("date", ["2026-09", "2026-11"]),
        ("long", ["2026/9/30", "2026/11/1"]),
        (None, ["9", "10"]),
        (None, ["1", "2", "a"]),
        (None, ["9", "1e3"]),
        (None, ["2026-9", "2026-11"]),
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
        ("date", "2026-01-02", "02-01-2026"),
        ("decimal(10,2)", "9.5", "much"),
        ("int", "2026", "2026-11"),
        ("timestamp", "2026-01-02", "noon"),
    ],
)
def test_a_value_of_another_type_has_no_place(field_type: str, good: str, stray: str) -> None:
    """A value that is none of the field's type is set apart and named in a warning."""
    order = order_values([good, stray], field="f", field_type=field_type)
    assert ({good}, {stray}) == (set(order.keys), set(order.strays))
    assert repr(stray) in order.warnings[0]


def test_values_that_a_key_generator_made_dates_of_compare_as_dates() -> None:
    """A long may be written as a date, with the year first: a warning says how the values compare."""
    order = order_values(["2026-01-03", "2026-01-02"], field="ts", field_type="long")
    expected = (
        "the values of partition field 'ts' are not numbers, which its type long asks for, "
        "but dates with the year first, and compare as such: '2026-01-02', '2026-01-03'"
    )
    assert (expected,) == order.warnings
    assert (frozenset(), "dates") == (order.strays, order.compared_as)


@pytest.mark.parametrize(
    ("field_type", "values"),
    [
        ("timestamp-micros", ["30-11-2026", "01-12-2026"]),
        ("date", ["30.11.2026", "01.12.2026"]),
        ("long", ["2026W01", "2026W02"]),
        ("boolean", ["yes", "no"]),
    ],
)
def test_values_that_are_all_of_another_type_have_no_place(field_type: str, values: list[str]) -> None:
    """As text they might be in any order, and the newest might go first: none has a place, and a warning says so."""
    order = order_values(values, field="f", field_type=field_type)
    assert ({}, frozenset(values)) == (order.keys, order.strays)
    assert "no value is one, so nothing expires there by count or size" in order.warnings[0]


@pytest.mark.parametrize(
    ("field_type", "values", "expected"),
    [
        (
            "string",
            ["8", "9", "10", "11"],
            (
                "partition field 'month' has the type string, but its values are all whole numbers and compare so: "
                "'9' goes before '10'"
            ),
        ),
        (
            "string",
            ["9", "10", "unknown"],
            (
                "partition field 'month' compares as numbers, since '10' would go before '9' as text, so 1 of 3 "
                "values, which are none, neither expire nor count: 'unknown'"
            ),
        ),
    ],
)
def test_texts_that_may_surprise_are_named_in_a_warning(field_type: str, values: list[str], expected: str) -> None:
    """The order of numbers and dates that are written as text is said."""
    assert (expected,) == order_values(values, field="month", field_type=field_type).warnings


@pytest.mark.parametrize(
    "values", [["08", "09", "10"], ["20261129", "20261130"], ["2026-11-29", "2026-11-30"], ["a", "b"], ["x", "9"]]
)
def test_texts_that_compare_as_they_read_need_no_warning(values: list[str]) -> None:
    """Nothing is said where text, numbers and dates go in the same order."""
    assert order_values(values, field="f", field_type="string").warnings == ()


def test_a_number_of_any_length_is_compared() -> None:
    """Digits that Python would not read as a number are text."""
    assert order_values(["9" * 5000, "1"], field="f", field_type="string").compared_as == "text"


@pytest.mark.parametrize(
    ("field_type", "values"),
    [
        ("string", ["30-11-2026", "01-12-2026"]),
        ("string", ["30.11.2026", "01.12.2026", "unknown"]),
        ("string", ["30112026", "01122026"]),
        ("long", ["30112026", "11122026"]),
        (None, ["30/11/2026", "01/12/2026"]),
    ],
)
def test_dates_with_the_day_first_are_in_no_order(field_type: str | None, values: list[str]) -> None:
    """As text and as numbers they go by the day, and the newest month might go first: nothing has a place."""
    order = order_values(values, field="f", field_type=field_type)
    assert ({}, frozenset(values)) == (order.keys, order.strays)
    assert "dates with the day first" in order.warnings[-1]
    assert "nothing expires there by count or size" in order.warnings[-1]


def test_numbers_and_dates_that_text_would_both_misread_are_in_no_order() -> None:
    """Nothing tells which of the two the others are compared as."""
    values = ["9", "10", "2026-9-1", "2026-10-1"]
    order = order_values(values, field="f", field_type="string")
    assert ({}, frozenset(values)) == (order.keys, order.strays)
    assert "both numbers and dates" in order.warnings[-1]


def test_only_digits_with_a_point_or_an_exponent_are_a_number() -> None:
    """Python would read ``1_0`` as ten."""
    assert {"1_0"} == order_values(["1_0", "9"], field="f", field_type="double").strays


def test_the_places_in_an_order_are_worked_out_once() -> None:
    """A field may have 100,000 values, and 10,000 policies that compare them."""
    order = order_values(["1", "2"], field="f", field_type="int")
    assert order.ranks is order.ranks
