from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_hudi_maint.core.errors import (
    CorruptTableError,
    InvalidSettingError,
    PendingActionError,
    StorageError,
    TableNotFoundError,
)
from airflow_hudi_maint.core.model.policy import DEFAULT_POLICY_KEY, DEFAULT_VALUE_KEY, EXPLICIT_POLICIES_KEY
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.properties import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    PropertiesFile,
    load_properties,
    parse_properties,
    update_properties,
)
from tests.golden.golden import golden_names, unpack

CHECKSUM = zlib.crc32(b".trips")
SOUND = f"""#Updated at 2026-11-30T05:34:58.356Z
#Mon Nov 30 05:34:58 UTC 2026
hoodie.table.name=trips
hoodie.table.create.schema={{"type"\\:"record","name"\\:"t"}}
my.own.key = kept as it stands
hoodie.table.checksum={CHECKSUM}
""".encode()


@pytest.fixture(params=["file", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    root = str(tmp_path / "trips") if request.param == "file" else f"memory://{tmp_path.name}/trips"
    opened = Storage.open(root)
    opened.write_atomic(PROPERTIES_PATH, SOUND)
    return opened


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\nd\t=\t4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("  a = 1 \r\n\r\nb=2\rc=3", {"a": "1 ", "b": "2", "c": "3"}),
        ("# no\n  ! no\n#a=1\\\nb=2\n", {"b": "2"}),
        ("a=one,\\\n    two,\\\r\n\tthree\n", {"a": "one,two,three"}),
        ("a=1\\\\\nb=2\n", {"a": "1\\", "b": "2"}),
        ("a=1\\\n\nb=2\n", {"a": "1", "b": "2"}),
        ("a=1\\\n#b=2\n", {"a": "1#b=2"}),
        ("a\\ b\\=c\\:d = e\\=f\n", {"a b=c:d": "e=f"}),
        ("a=\\t\\n\\r\\f\\q\\\\\n", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u20AC\\ud83d\\ude00\n", {"a": "é€\U0001f600"}),
        ("a==b\nc=:d\ne= =f\n", {"a": "=b", "c": ":d", "e": "=f"}),
        ("a\nb=\n=c\n", {"a": "", "b": "", "": "c"}),
        ("a=1\na=2\n", {"a": "2"}),
        ("a=1\\", {"a": "1"}),
        ("\\\na=1\n", {"a": "1"}),
        ("\\\n# no\na=1\n", {"a": "1"}),
        ("a=1\\\n\\\n#b\n", {"a": "1#b"}),
        ("", {}),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    """Separators, comments, continuation lines, escapes and doubled keys mean what they mean to Java."""
    assert parse_properties(text) == expected


def test_broken_escape_is_refused_by_name() -> None:
    """An escape without four digits is the one thing that Java refuses; the message names file and text."""
    with pytest.raises(CorruptTableError, match=r"trips/hoodie.properties has a \\u without.*00g1"):
        parse_properties("a=\\u00g1\n", name="trips/hoodie.properties")


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_reads_back(values: dict[str, str]) -> None:
    """Any keys and values survive writing and reading, and the text is ASCII."""
    text = str(PropertiesFile().with_changes(set=values))
    assert text.isascii()
    assert parse_properties(text) == values


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the reader fail in a way of its own, and nothing is lost on the way."""
    try:
        file = PropertiesFile.parse(text)
    except CorruptTableError:
        return
    assert str(file) == text


def test_written_as_java_writes() -> None:
    """Separators and comment signs are escaped in keys and values, blanks in keys and in front."""
    file = PropertiesFile().with_changes(set={"a b": " x y", "c": '[{"d": "e=1/"}]', "f#": "é!"})
    assert str(file) == 'a\\ b=\\ x y\nc=[{"d"\\: "e\\=1/"}]\nf\\#=\\u00E9\\!\n'


def test_changes_leave_the_rest_as_it_stands() -> None:
    """Comments, order, spelling and unknown keys stay; a changed entry keeps its place, a new one goes to the end."""
    file = PropertiesFile.parse("# by hand\r\na : 1\r\n\r\nb = two,\\\r\n  three\r\nc=3\r\na=4\r\nlast=one")
    changed = file.with_changes(set={"a": "5", "new": "6"}, remove=["c"])
    assert str(changed) == "# by hand\r\n\r\nb = two,\\\r\n  three\r\na=5\nlast=one\nnew=6\n"
    assert str(file.with_changes(set={"b": "two,three"})) == str(file)


@pytest.mark.parametrize("end", ["", "\n", "\r", "\r\n", "\\", "\\\n", "\\\r", "\\\r\n", "\\\\", "\n# \\", "\n\\"])
def test_an_entry_is_added_to_a_file_that_ends_anyhow(end: str) -> None:
    """No backslash at the end takes the new entry for its own line."""
    file = PropertiesFile.parse(f"a=1{end}")
    assert parse_properties(str(file.with_changes(set={"b": "2"}))) == {**file.as_dict(), "b": "2"}


def test_properties_are_loaded(storage: Storage) -> None:
    """Loading gives unescaped keys and values."""
    loaded = load_properties(storage)
    assert loaded["hoodie.table.create.schema"] == '{"type":"record","name":"t"}'
    assert loaded["my.own.key"] == "kept as it stands"


@pytest.mark.parametrize("current", [None, b"", b"hoodie.table.name=tri", SOUND.replace(b"name=trips", b"name=other")])
def test_backup_is_read_where_hudi_would(storage: Storage, current: bytes | None) -> None:
    """A file that is missing, empty, cut short or of a wrong checksum gives way to its backup."""
    if current is None:
        storage.delete(PROPERTIES_PATH)
    else:
        storage.write_atomic(PROPERTIES_PATH, current)
    storage.write_atomic(BACKUP_PATH, SOUND)
    assert load_properties(storage) == parse_properties(SOUND.decode())


def test_sound_file_wins_over_a_backup(storage: Storage) -> None:
    """A backup beside a sound file is a left-over."""
    storage.write_atomic(BACKUP_PATH, SOUND + b"old=1\n")
    assert "old" not in load_properties(storage)


def test_file_without_checksum_is_read_when_it_is_all_there_is(storage: Storage) -> None:
    """An unsound file without a backup is read as it is."""
    storage.write_atomic(PROPERTIES_PATH, b"hoodie.table.name=trips\n")
    assert load_properties(storage) == {"hoodie.table.name": "trips"}


def test_file_that_comes_back_between_two_looks_is_found(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hudi removes the backup once the new file is there: looking first at one and then at the other misses both."""
    storage.delete(PROPERTIES_PATH)
    read = storage.read_bytes

    def racing(path: str) -> bytes:
        if path == BACKUP_PATH:
            storage.write_atomic(PROPERTIES_PATH, SOUND)
        return read(path)

    monkeypatch.setattr(storage, "read_bytes", racing)
    assert load_properties(storage)["hoodie.table.name"] == "trips"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (".hoodie_partition_metadata", "it is a partition of a Hudi table: give the table's base path, above it"),
        ("hoodie.properties", "it is the .hoodie folder of a table: give the folder above it"),
        ("_delta_log/00000000000000000000.json", "it is a Delta table, and Hudi tables alone are maintained here"),
        ("metadata/v1.metadata.json", "it is an Iceberg table, and Hudi tables alone are maintained here"),
        ("metadata", r"is it a Hudi table\?"),
        ("metadata/notes.txt", r"is it a Hudi table\?"),
    ],
)
def test_what_is_there_instead_of_a_table_is_said(tmp_path: Path, file: str, said: str) -> None:
    storage = Storage.open(str(tmp_path))
    storage.write_atomic(file, b"")
    with pytest.raises(TableNotFoundError, match=rf"has no \.hoodie folder; {said}"):
        load_properties(storage)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """No directory, a directory without .hoodie, and one without the file are told apart."""
    storage = Storage.open(str(tmp_path / "trips"))
    with pytest.raises(TableNotFoundError, match=r"There is no directory .*trips"):
        load_properties(storage)
    storage.write_atomic("part.parquet", b"")
    with pytest.raises(TableNotFoundError, match=r"trips has no \.hoodie folder; is it a Hudi table\?"):
        load_properties(storage)
    storage.write_atomic(".hoodie/20261130053458356.commit", b"")
    with pytest.raises(TableNotFoundError, match=r"trips has no hoodie\.properties; is it a Hudi table\?"):
        load_properties(storage)
    storage.write_atomic(PROPERTIES_PATH, b"")
    with pytest.raises(CorruptTableError, match=r"hoodie\.properties is empty and has no backup"):
        load_properties(storage)


def test_policy_keys_are_set_and_removed(storage: Storage) -> None:
    """Only the entries of the policy keys change; no backup is left."""
    policies = '[{"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 30}]'
    after = update_properties(storage, set={EXPLICIT_POLICIES_KEY: policies, DEFAULT_VALUE_KEY: "9"})
    assert after == load_properties(storage)
    assert after[EXPLICIT_POLICIES_KEY] == policies
    assert storage.read_bytes(PROPERTIES_PATH).startswith(SOUND)
    assert "hoodie.properties.backup" not in {entry.name for entry in storage.list(".hoodie")}
    update_properties(storage, set={}, remove=[EXPLICIT_POLICIES_KEY, DEFAULT_VALUE_KEY])
    assert storage.read_bytes(PROPERTIES_PATH) == SOUND


def test_change_that_changes_nothing_writes_nothing(storage: Storage) -> None:
    """Setting what is set and removing what is not there leaves the file alone."""
    update_properties(storage, set={DEFAULT_VALUE_KEY: "9"})
    writes = storage.requests.writes
    update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, remove=[DEFAULT_POLICY_KEY])
    assert storage.requests.writes == writes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"set": {"hoodie.table.version": "9"}}, "'hoodie.table.version' is not written"),
        ({"set": {}, "remove": ["hoodie.table.name"]}, "'hoodie.table.name' is not written"),
        ({"set": {DEFAULT_VALUE_KEY: "1"}, "remove": [DEFAULT_VALUE_KEY]}, "both set and removed"),
    ],
)
def test_other_keys_are_refused(storage: Storage, changes: dict[str, object], message: str) -> None:
    """Nothing but policy keys is ever written to a table's properties."""
    with pytest.raises(InvalidSettingError, match=message):
        update_properties(storage, **changes)  # type: ignore[arg-type]
    assert storage.read_bytes(PROPERTIES_PATH) == SOUND


def test_backup_that_a_dead_writer_left_mends_the_file(storage: Storage) -> None:
    """When only the backup is left, it becomes the file again before the change."""
    storage.delete(PROPERTIES_PATH)
    storage.write_atomic(BACKUP_PATH, SOUND)
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert after == load_properties(storage)
    assert storage.read_bytes(PROPERTIES_PATH) == SOUND + f"{DEFAULT_VALUE_KEY}=9\n".encode()
    assert "hoodie.properties.backup" not in {entry.name for entry in storage.list(".hoodie")}


def _interfere(
    monkeypatch: pytest.MonkeyPatch, storage: Storage, change: Callable[[int], bytes], *, times: int
) -> None:
    """Let somebody else change the file right after each of the first backups."""
    write_new = storage.write_new
    done = 0

    def racing(path: str, data: bytes) -> bool:
        nonlocal done
        is_written = write_new(path, data)
        if done < times:
            done += 1
            storage.write_atomic(PROPERTIES_PATH, change(done))
        return is_written

    monkeypatch.setattr(storage, "write_new", racing)


def test_change_by_somebody_else_is_kept(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change in between is noticed, and ours is applied to it."""
    _interfere(monkeypatch, storage, lambda count: SOUND + f"theirs={count}\n".encode(), times=2)
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert (after["theirs"], after[DEFAULT_VALUE_KEY]) == ("2", "9")
    assert load_properties(storage) == after
    assert "hoodie.properties.backup" not in {entry.name for entry in storage.list(".hoodie")}


def test_file_that_keeps_changing_is_left_alone(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some attempts the error is one that may be tried again, and the other's file stands."""
    _interfere(monkeypatch, storage, lambda count: SOUND + f"theirs={count}\n".encode(), times=99)
    with pytest.raises(PendingActionError, match=r"hoodie\.properties kept changing for 20 attempts"):
        update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert DEFAULT_VALUE_KEY not in load_properties(storage)
    assert load_properties(storage)["theirs"] == "20"


def test_failed_replacement_leaves_a_table_that_can_be_read(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """When storage fails half-way through the file, its backup is there, and the next change mends it."""
    write = storage.write_atomic

    def failing(path: str, data: bytes) -> None:
        if path == PROPERTIES_PATH:
            write(path, data[:40])
            raise StorageError("the disk is full")
        write(path, data)

    with monkeypatch.context() as patched:
        patched.setattr(storage, "write_atomic", failing)
        with pytest.raises(StorageError, match="full"):
            update_properties(storage, set={DEFAULT_VALUE_KEY: "9"})
    assert load_properties(storage) == parse_properties(SOUND.decode())
    after = update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    assert load_properties(storage) == after == {**parse_properties(SOUND.decode()), DEFAULT_VALUE_KEY: "9"}


def test_change_of_a_table_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Nothing is created where there is no table."""
    storage = Storage.open(str(tmp_path / "trips"))
    with pytest.raises(TableNotFoundError):
        update_properties(storage, set={DEFAULT_VALUE_KEY: "9"})
    assert not (tmp_path / "trips").exists()


@pytest.mark.parametrize("name", golden_names())
def test_what_hudi_wrote_is_understood(name: str, tmp_path: Path) -> None:
    """Of files by three versions of Hudi nothing is lost, and the checksum is the one that is expected."""
    storage = Storage.open(str(unpack(name, tmp_path)))
    before = storage.read_bytes(PROPERTIES_PATH)
    assert str(PropertiesFile.parse(before.decode("latin-1"))).encode("latin-1") == before
    storage.write_atomic(BACKUP_PATH, before + b"old=1\n")
    assert "old" not in load_properties(storage)
    update_properties(storage, set={DEFAULT_VALUE_KEY: "9"}, wait_seconds=0)
    update_properties(storage, set={}, remove=[DEFAULT_VALUE_KEY])
    assert storage.read_bytes(PROPERTIES_PATH) == before
