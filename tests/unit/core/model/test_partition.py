from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.partition import PartitionScheme, PartitionSpec, naming_problem


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("user_id=*/", (("user_id", None),)),
        ("user_id=1", (("user_id", "1"),)),
        (" /region=eu/user_id=*/ ", (("region", "eu"), ("user_id", None))),
        ("/", ()),
        (" / ", ()),
        ("day=2026%2F11%2F30/", (("day", "2026/11/30"),)),
        ("name=%2A/", (("name", "*"),)),
        ("name=a=b/", (("name", "a=b"),)),
    ],
)
def test_specs_are_read(text: str, levels: tuple[tuple[str, str | None], ...]) -> None:
    """A spec is field=value for each level, a star for any value, and a slash alone for the whole table."""
    assert levels == PartitionSpec.parse(text).levels


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("user_id", "'user_id' is not field=value"),
        ("=1/", "'=1' is not field=value"),
        ("user_id=/", "'user_id=' is not field=value"),
        ("*/", "is not field=value"),
        ("", "names nothing; write for example 'user_id=*/', or '/' for the whole table"),
        ("  ", "names nothing"),
        ("//", "names nothing"),
        ("a=1/a=2/", "names the field 'a' twice"),
    ],
)
def test_broken_specs_are_refused(text: str, reason: str) -> None:
    """The error shows the spec and what is wrong with it."""
    with pytest.raises(InvalidPolicyError, match="partitionSpec") as raised:
        PartitionSpec.parse(text)
    assert reason in str(raised.value)


values = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@given(levels=st.lists(st.one_of(st.none(), values), max_size=4))
def test_a_spec_is_read_as_it_is_written(levels: list[str | None]) -> None:
    """Whatever a value holds, its spec's text means the same spec."""
    spec = PartitionSpec(levels=tuple((f"f{number}", value) for number, value in enumerate(levels)))
    assert spec == PartitionSpec.parse(str(spec))


@pytest.mark.parametrize("text", ["b=1/", "a=1/c=2/", "b=1/a=1/", "a=1/b=1/c=1/"])
def test_a_spec_names_the_first_fields_in_order(text: str) -> None:
    """Other fields, and other orders of them, are refused with the table's own."""
    with pytest.raises(InvalidPolicyError, match=r"\['a', 'b'\]"):
        PartitionSpec.parse(text).check(PartitionScheme(fields=("a", "b")))


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        ("/", ("1", "2"), True),
        ("a=*/", ("1", "2"), True),
        ("a=1/", ("1", "2"), True),
        ("a=1/b=2/", ("1", "2"), True),
        ("a=2/", ("1", "2"), False),
        ("a=*/b=3/", ("1", "2"), False),
        ("a=1/b=2/c=3/", ("1", "2"), False),
    ],
)
def test_a_spec_matches_what_lies_under_it(spec: str, path: tuple[str, ...], expected: bool) -> None:  # noqa: FBT001
    """Each level that names a value has to agree."""
    assert expected == PartitionSpec.parse(spec).matches(path)


@pytest.mark.parametrize(
    ("scheme", "path", "expected"),
    [
        (PartitionScheme(fields=("a", "b"), hive_style=True), "a=1/b=2", ("1", "2")),
        (PartitionScheme(fields=("a", "b"), hive_style=True), "b=2/a=1", None),
        (PartitionScheme(fields=("a", "b"), hive_style=True), "a=1", None),
        (PartitionScheme(fields=("a",), hive_style=True), "a=x=y", ("x=y",)),
        (PartitionScheme(fields=("a", "b")), "1/2", ("1", "2")),
        (PartitionScheme(fields=("a", "b")), "a=1/b=2", ("1", "2")),
        (PartitionScheme(fields=("a", "b")), "a=1/2", None),
        (PartitionScheme(fields=("a", "b")), "b=2/a=1", None),
        (PartitionScheme(fields=("a", "b")), "x=1/2", ("x=1", "2")),
        (PartitionScheme(fields=("a",)), "a=2026/11/30", ("2026/11/30",)),
        (PartitionScheme(fields=("a",), url_encoded=True), "a=2026%2F11", ("2026/11",)),
        (PartitionScheme(fields=("a", "b")), "1/2/3", None),
        (PartitionScheme(fields=("a",)), "2026/11/30", ("2026/11/30",)),
        (PartitionScheme(fields=("a",), url_encoded=True), "2026%2F11%2F30", ("2026/11/30",)),
        (PartitionScheme(fields=("a",)), "2026%2F11", ("2026%2F11",)),
        (PartitionScheme(fields=("a",)), "", None),
        (PartitionScheme(fields=()), "", ()),
        (PartitionScheme(fields=()), "a=1", None),
    ],
)
def test_a_path_is_taken_apart(scheme: PartitionScheme, path: str, expected: tuple[str, ...] | None) -> None:
    """Values come in field order and decoded; a path that does not fit has none."""
    assert expected == scheme.values(path)


def test_the_scheme_is_read_from_the_tables_properties() -> None:
    """Key types behind a colon are dropped, and both switches are off unless set."""
    properties = {
        "hoodie.table.partition.fields": "region, ts:timestamp",
        "hoodie.datasource.write.hive_style_partitioning": "true",
    }
    expected = PartitionScheme(fields=("region", "ts"), hive_style=True, url_encoded=False)
    assert expected == PartitionScheme.from_properties(properties)


@pytest.mark.parametrize("text", ["true", "True", "TRUE", " true "])
def test_a_switch_is_read_in_any_case(text: str) -> None:
    """Hudi reads the switches as Java booleans, and some writers note them as Python does."""
    properties = {
        "hoodie.table.partition.fields": "a",
        "hoodie.datasource.write.hive_style_partitioning": text,
        "hoodie.datasource.write.partitionpath.urlencode": text,
    }
    expected = PartitionScheme(fields=("a",), hive_style=True, url_encoded=True)
    assert expected == PartitionScheme.from_properties(properties)


@pytest.mark.parametrize(
    ("path", "reserved", "expected"),
    [
        ("day=1", ",*", None),
        ("", ",*", None),
        ("day=*", ",", None),
        ("day=*", ",*", "its name holds '*', which Hudi takes for a wildcard"),
        ("a,b*", ",*", "its name holds ',', which Hudi takes for the end of a name"),
        (" ", ",*", "its name is blank"),
    ],
)
def test_a_name_that_hudi_would_read_as_something_else_is_told(path: str, reserved: str, expected: str | None) -> None:
    """Only what the list at hand reserves matters; the empty path is the partition of a table without any."""
    assert expected == naming_problem(path, reserved=reserved)
