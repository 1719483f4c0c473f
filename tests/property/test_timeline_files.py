"""Files of earlier states are passed over unread only where they change nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.model.instant import Action, parse_instant_file_name
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.timeline import TimelineReader

TIMES = ["20261130100001000", "20261130100002000", "20261130100002", "2026113010000x"]
names = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(TIMES),
    st.sampled_from(["", "_20261130100005000", "_20261130100006000", "_broken"]),
    st.sampled_from(["", *(f".{action}" for action in Action), ".unknown"]),
    st.sampled_from(["", ".requested", ".inflight", ".crc"]),
)


class _Names(Storage):
    """A storage whose only directory has these names."""

    def __init__(self, found: list[str]) -> None:
        self.found = tuple(found)

    def names(self, path: str) -> tuple[str, ...]:
        del path
        return self.found


@given(found=st.lists(names, unique=True, max_size=25))
def test_timeline_is_that_of_all_files(found: list[str]) -> None:
    """Parsing every name gives the same instants, in the same states, and the same log compactions."""
    parsed = [one for one in map(parse_instant_file_name, found) if one is not None]
    read = TimelineReader(storage=_Names(found), folder="timeline").read()
    assert read == Timeline.of(parsed)
