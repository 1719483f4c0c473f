"""Properties files read, written and changed as Java does it, over texts made of what Java treats specially."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.java_properties import PropertiesFile, parse_properties
from tests.property import java_reference

PIECES = st.sampled_from(
    [
        *"ab=: #!\t\f\\\\\\",
        *("\n", "\r", "\r\n", "\\\n", "\\\r\n", "\n\n", "\\u00e9", "\\uD83D\\uDE00", "\\uD83D", "\\u12", "\\u"),
        *("é", "\\t", "\\=", "\\:", "key=value\n", "# comment\n", "  "),
    ]
)
TEXTS = st.lists(PIECES, max_size=25).map("".join)
WORDS = st.text(st.characters(codec="utf-8"), max_size=12)
PROPERTIES = st.dictionaries(WORDS, WORDS, max_size=5)


@given(TEXTS)
def test_a_text_means_what_it_means_to_java(text: str) -> None:
    """Or is refused by both."""
    found = None
    with contextlib.suppress(CorruptTableError):
        found = parse_properties(text)
    assert java_reference.load(text) == found


@given(PROPERTIES)
def test_what_is_written_is_what_java_writes(values: dict[str, str]) -> None:
    """To the letter, so that Hudi's next rewrite changes nothing but the dates."""
    written = str(PropertiesFile().with_changes(set=values))
    assert java_reference.store(values) == written
    assert values == java_reference.load(written)


@given(TEXTS, PROPERTIES, st.sets(WORDS | st.sampled_from(["a", "b", "key", ""]), max_size=3))
def test_a_change_changes_what_was_asked_and_nothing_else(text: str, values: dict[str, str], gone: set[str]) -> None:
    """Whatever the file looks like, also where its last line is not ended, or ends in a backslash."""
    before = java_reference.load(text)
    if before is None:
        return
    removed = gone - values.keys()
    changed = str(PropertiesFile.parse(text).with_changes(set=values, remove=removed))
    kept = {key: value for key, value in before.items() if key not in removed}
    assert {**kept, **values} == java_reference.load(changed)


@given(TEXTS, PROPERTIES)
def test_a_second_change_to_the_same_changes_nothing(text: str, values: dict[str, str]) -> None:
    """So a second run of a task writes nothing."""
    if java_reference.load(text) is None:
        return
    once = str(PropertiesFile.parse(text).with_changes(set=values))
    assert once == str(PropertiesFile.parse(once).with_changes(set=values))


@given(TEXTS)
def test_comments_and_order_stay_as_they_stand(text: str) -> None:
    """An entry that is added and removed again leaves the text, but for the line end that it needed."""
    if java_reference.load(text) is None or "added.key" in parse_properties(text):
        return
    added = PropertiesFile.parse(text).with_changes(set={"added.key": "1"})
    assert str(PropertiesFile.parse(str(added)).with_changes(set={}, remove=["added.key"])).startswith(text)
