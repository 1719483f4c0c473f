"""How arguments are read."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.hooks import arguments


@pytest.mark.parametrize("value", ["104857600", 104857600, 104857600.0, " 104_857_600 "])
def test_a_whole_number_may_come_as_digits(value: object) -> None:
    """A number rendered from a template reads as the number itself."""
    assert arguments.as_int("target_file_bytes", value) == 104857600


@pytest.mark.parametrize("value", ["1e6", "1.5", 1.5, "", None, True, "ten", "\uff11\uff12"])
def test_what_is_no_whole_number_is_refused_by_name(value: object) -> None:
    """The error names the argument and shows its value."""
    with pytest.raises(InvalidSettingError, match="target_file_bytes="):
        arguments.as_int("target_file_bytes", value)


@pytest.mark.parametrize("value", [None, "", "None", "null", " none "])
def test_what_a_template_makes_of_nothing_counts_as_not_given(value: object) -> None:
    """None, an empty text and the words for nothing are the default."""
    assert arguments.as_optional_int("max_groups", value) is None
    assert arguments.as_optional_text("base_path", value) is None
    assert arguments.as_texts("sort_columns", value) == ()
    assert arguments.as_objects("policies", value) is None
    assert arguments.as_object("guards", value) == {}


@pytest.mark.parametrize("value", ["None", "null", " NULL "])
def test_the_words_for_nothing_are_refused_where_the_default_is_wide(value: str) -> None:
    """A template over nothing never means another table or every partition."""
    with pytest.raises(InvalidSettingError, match=r"base_path='.*' is what a template makes of nothing"):
        arguments.as_exact_text("base_path", value)


def test_none_and_an_empty_text_leave_an_argument_out() -> None:
    """These two are written on purpose."""
    assert [arguments.as_exact_text("base_path", value) for value in (None, "", " ", "/lake")] == [
        None,
        None,
        None,
        "/lake",
    ]


@pytest.mark.parametrize("value", [[20261130053458356, "20261130053458357"], "20261130053458356, 20261130053458357"])
def test_instants_may_be_numbers(value: object) -> None:
    """Rendering to native objects makes numbers of them; so does JSON without quotes."""
    expected = ("20261130053458356", "20261130053458357")
    assert arguments.as_instants("instants", value) == expected
    assert arguments.as_instants("instants", "[20261130053458356, 20261130053458357]") == expected
    assert arguments.as_instants("instants", 20261130053458356) == expected[:1]
    assert arguments.as_optional_instant("since", 20261130053458356) == expected[0]


def test_a_switch_is_no_instant() -> None:
    """Python counts true as a number."""
    with pytest.raises(InvalidSettingError, match="since=True"):
        arguments.as_optional_instant("since", value=True)
    with pytest.raises(InvalidSettingError, match="instants holds True"):
        arguments.as_instants("instants", [True])


@pytest.mark.parametrize(
    ("value", "expected"), [("True", True), ("false", False), (True, True), ("0", False), ("on", True)]
)
def test_a_switch_reads_booleans_and_their_words(value: object, expected: bool) -> None:  # noqa: FBT001 a parameter
    """A switch may be rendered by a template."""
    assert arguments.as_bool("enabled", value) is expected


def test_a_switch_that_is_neither_is_refused() -> None:
    """A typo never switches a step on or off."""
    with pytest.raises(InvalidSettingError, match="enabled='ture'"):
        arguments.as_bool("enabled", "ture")


@pytest.mark.parametrize("value", [["a", "b"], ("a", "b"), '["a", "b"]', "a, b"])
def test_a_list_of_texts_comes_in_four_forms(value: object) -> None:
    """Lists, tuples, JSON and texts apart by commas are the same."""
    assert arguments.as_texts("sort_columns", value) == ("a", "b")


@pytest.mark.parametrize("value", ['["a", 1]', {"a": 1}, 5, "a,,b", '["a'])
def test_a_list_of_anything_else_is_refused(value: object) -> None:
    """Only non-empty texts are a list of texts."""
    with pytest.raises(InvalidSettingError, match="sort_columns"):
        arguments.as_texts("sort_columns", value)


@pytest.mark.parametrize(("value", "expected"), [(timedelta(minutes=1), 60.0), ("90", 90.0), (0, 0.0), (1.5, 1.5)])
def test_a_duration_is_a_timedelta_or_seconds(value: object, expected: float) -> None:
    """Seconds may come as a text."""
    assert arguments.as_seconds("quiet_for", value) == expected


@pytest.mark.parametrize("value", [-1, "soon", "nan", "inf", timedelta(seconds=-1)])
def test_a_duration_below_zero_or_without_end_is_refused(value: object) -> None:
    """There is no such wait."""
    with pytest.raises(InvalidSettingError, match="quiet_for"):
        arguments.as_seconds("quiet_for", value)


def test_a_field_is_taken_from_a_result_and_from_its_json() -> None:
    """Tasks may be given paths, or the results that hold them."""
    assert arguments.as_result_field("plan_path", {"plan_path": "/p.json", "x": 1}, field="plan_path") == "/p.json"
    assert arguments.as_result_field("plan_path", '{"plan_path": "/p.json"}', field="plan_path") == "/p.json"
    assert arguments.as_result_field("plan_path", "/p.json", field="plan_path") == "/p.json"
    assert arguments.as_result_field("plan_path", None, field="plan_path") is None
    with pytest.raises(InvalidSettingError, match="without 'plan_path'; it has report_path"):
        arguments.as_result_field("plan_path", {"report_path": "/r"}, field="plan_path")


def test_an_unknown_name_is_refused_with_its_near_matches() -> None:
    """The one that was meant is proposed."""
    with pytest.raises(
        InvalidSettingError, match="no setting 'max_partition_shares'; did you mean max_partition_share"
    ):
        arguments.check_names("guards", ["max_partition_shares"], known=["max_partition_share", "clock"])
    with pytest.raises(InvalidSettingError, match="known are a, b"):
        arguments.check_names("guards", ["zzz"], known=["b", "a"])
