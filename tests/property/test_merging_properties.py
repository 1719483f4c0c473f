"""What holds of every plan and merge of plain files: rows stay, once, in order; bounds are kept; twice is once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_hudi_maint.core.maintenance.merge_workspace import open_merge_workspace
from airflow_hudi_maint.core.maintenance.merging import merge_small_files, undo_merge
from airflow_hudi_maint.core.model.merge_plan import MergePlan
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.planning.merge_kinds import is_hidden, kind_of
from airflow_hudi_maint.core.planning.merging import ListedFile, plan_directory, within_limits

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NOW_NS = int(NOW.timestamp() * 1e9)

STEMS = st.one_of(
    st.text(alphabet="ab-_.0=% é", min_size=1, max_size=6),
    st.from_regex(r"\Apart-0000[0-9]\Z"),
    st.from_regex(r"\Aa-merged-[0-9a-f]{8}\Z"),
)
EXTENSIONS = st.sampled_from([".csv", ".csv.gz", ".json", ".parquet", ".snappy.parquet", ".orc", ".txt", ""])
FILES = st.dictionaries(
    st.tuples(STEMS, EXTENSIONS).map("".join).filter(lambda name: name not in (".", "..")),
    st.tuples(st.integers(0, 130), st.integers(0, 2000)),
    max_size=25,
)
SETTINGS = st.builds(
    MergeSettings,
    target_file_bytes=st.integers(100, 300),
    small_file_bytes=st.integers(1, 100),
    min_input_files=st.integers(2, 4),
    min_age_seconds=st.integers(0, 900),
    keep_order=st.booleans(),
)


def listing(files: Mapping[str, tuple[int, int]]) -> list[ListedFile]:
    return [(name, False, size, NOW_NS - age * 10**9) for name, (size, age) in files.items()]


@given(files=FILES, chosen=SETTINGS, shuffled=st.randoms(use_true_random=False))
def test_a_plan_keeps_its_bounds(files: Mapping[str, tuple[int, int]], chosen: MergeSettings, shuffled: object) -> None:
    """Groups are large enough, outputs not too large, no file is in two, none is hidden, large or young."""
    planned = plan_directory("d", entries=listing(files), settings=chosen, now=NOW)
    names = [one.name for group in planned.groups for one in group.inputs]
    outputs = [group.output_name for group in planned.groups]

    assert len(set(names)) == len(names)
    assert len(set(outputs)) == len(outputs)
    assert not set(outputs) & set(files)
    for group in planned.groups:
        assert chosen.min_input_files <= len(group.inputs)
        assert group.input_bytes <= chosen.target_file_bytes
        assert group.kind == kind_of(group.output_name)
        assert sorted(one.name for one in group.inputs) == [one.name for one in group.inputs]
        for one in group.inputs:
            size, age = files[one.name]
            assert size < chosen.small_file_bytes
            assert age >= chosen.min_age_seconds
            assert not is_hidden(one.name)
            assert kind_of(one.name) == group.kind
    assert len(names) + sum(one.files for one in planned.left_alone) == len(files)

    entries = listing(files)
    shuffled.shuffle(entries)  # type: ignore[attr-defined]
    assert planned == plan_directory("d", entries=entries, settings=chosen, now=NOW)


@given(files=FILES, chosen=SETTINGS)
def test_a_merged_file_sorts_where_its_inputs_were(files: Mapping[str, tuple[int, int]], chosen: MergeSettings) -> None:
    """By name, the files of each kind give the same sequence of inputs as before."""
    chosen = MergeSettings.from_json({**chosen.to_json(), "keep_order": True})
    planned = plan_directory("d", entries=listing(files), settings=chosen, now=NOW)
    merged = {group.output_name: [one.name for one in group.inputs] for group in planned.groups}
    gone = {name for names in merged.values() for name in names}
    for kind in {kind_of(name) for name in files} - {None}:
        before = sorted(name for name in files if kind_of(name) == kind and not is_hidden(name))
        after = sorted(
            [name for name in before if name not in gone] + [name for name in merged if kind_of(name) == kind]
        )
        assert before == [name for one in after for name in merged.get(one, [one])]


@given(files=FILES, chosen=SETTINGS)
def test_a_plan_of_what_was_merged_merges_nothing(files: Mapping[str, tuple[int, int]], chosen: MergeSettings) -> None:
    """Whatever the merged files' sizes are: Parquet and ORC shrink."""
    planned = plan_directory("d", entries=listing(files), settings=chosen, now=NOW)
    gone = {one.name for group in planned.groups for one in group.inputs}
    for share in (1, 4):
        after = {name: found for name, found in files.items() if name not in gone}
        for group in planned.groups:
            after[group.output_name] = (group.input_bytes // share, 2000)
        again = plan_directory("d", entries=listing(after), settings=chosen, now=NOW)
        outputs = {group.output_name for group in planned.groups}
        fresh = [group for group in again.groups if all(one.name in outputs for one in group.inputs)]
        assert [] == fresh
        if share == 1 and chosen.keep_order:
            assert [] == [group for group in again.groups if outputs & {one.name for one in group.inputs}]


@given(files=st.lists(FILES, max_size=4), chosen=SETTINGS, most=st.integers(1, 3), most_bytes=st.integers(1, 400))
def test_a_run_keeps_its_limits_and_leaves_the_rest_to_the_next(
    files: Sequence[Mapping[str, tuple[int, int]]], chosen: MergeSettings, most: int, most_bytes: int
) -> None:
    bounded = MergeSettings.from_json({**chosen.to_json(), "max_groups": most, "max_bytes": most_bytes})
    planned = [
        plan_directory(f"d={number}", entries=listing(one), settings=chosen, now=NOW)
        for number, one in enumerate(files)
    ]
    kept = [group for one in within_limits(planned, settings=bounded) for group in one.groups]
    groups = [group for one in planned for group in one.groups]

    assert len(kept) <= most
    assert sum(group.input_bytes for group in kept) <= most_bytes or len([g for g in kept if g.input_bytes]) <= 1
    assert [group for group in groups if group in kept] == kept
    assert bool(groups) == bool(kept)


@given(files=FILES, chosen=SETTINGS)
def test_a_plan_reads_back_as_it_was_written(files: Mapping[str, tuple[int, int]], chosen: MergeSettings) -> None:
    directories = (plan_directory("d", entries=listing(files), links=["x"], settings=chosen, now=NOW),)
    plan = MergePlan(root="/lake", planned_at=NOW, settings=chosen, directories=directories, warnings=("é",))

    assert plan == MergePlan.from_json(json.loads("".join(plan.to_lines())), name="plan.json")
    assert plan.to_json() == json.loads("".join(plan.to_lines()))


ROWS = st.lists(st.text(alphabet='ab1,"\n\r \té', max_size=8), max_size=4)


def csv_of(rows: Sequence[str]) -> bytes:
    return "\n".join('"' + row.replace('"', '""') + '"' for row in rows).encode()


@settings(max_examples=40)
@given(
    contents=st.dictionaries(
        st.from_regex(r"\A[ab]=[12]/[a-c%é ]{1,3}\.csv\Z"),
        st.tuples(ROWS, st.sampled_from(["", "\n", "\r\n"])),
        max_size=10,
    ),
    target=st.integers(20, 60),
)
def test_no_row_is_lost_doubled_or_reordered_and_an_undo_gives_back_every_byte(
    contents: Mapping[str, tuple[Sequence[str], str]], target: int
) -> None:
    """On real files: by directory, and by name within it; a second run changes nothing."""
    chosen = MergeSettings(
        target_file_bytes=target, small_file_bytes=target, min_age_seconds=0, csv_header="no", parallel_groups=1
    )
    with TemporaryDirectory() as folder:
        root = Path(folder) / "lake"
        for path, (rows, end) in contents.items():
            data = csv_of(rows) + (end.encode() if rows else b"")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(data)
        root.mkdir(exist_ok=True)
        before = _files(root)
        workspace = open_merge_workspace(str(root), log=lambda _: None)
        now = datetime.now(tz=UTC) + timedelta(seconds=5)
        first = merge_small_files(workspace, now=now, settings=chosen)
        merged = _files(root)
        assert _rows(before) == _rows(merged)
        assert len(before) - first.report.files_before + first.report.files_after == len(merged)

        second = merge_small_files(workspace, now=now + timedelta(seconds=1), settings=chosen)
        assert 0 == second.report.files_before
        assert merged == _files(root)
        if first.report.groups:
            undo_merge(workspace, now=now, run=first.report.run)
        assert before == _files(root)


def _files(root: Path) -> Mapping[str, bytes]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*.csv")}
    return {path: found[path].read_bytes() for path in sorted(found) if not path.startswith(".")}


def _rows(files: Mapping[str, bytes]) -> Mapping[str, list[str]]:
    """The records of each directory, by file name; split at line ends that are not between quotes."""
    rows: dict[str, list[str]] = {}
    for path, data in sorted(files.items()):
        found = rows.setdefault(path.rpartition("/")[0], [])
        record = ""
        for line in data.decode().splitlines(keepends=True):
            record += line
            if record.count('"') % 2 == 0 and record.endswith(("\n", "\r")):
                found.append(record.rstrip("\r\n"))
                record = ""
        if record:
            found.append(record.rstrip("\r\n"))
    return {path: found for path, found in rows.items() if found}
