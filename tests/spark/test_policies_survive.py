"""TTL policies in ``hoodie.properties`` are still there after each release has done what it does with the file."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_hudi_maint.core import maintenance
from airflow_hudi_maint.core.model.policy import PolicySet
from airflow_hudi_maint.core.storage.java_properties import PropertiesFile
from airflow_hudi_maint.core.storage.properties import CHECKSUM_KEY, PROPERTIES_PATH
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.property import java_reference
from tests.spark.writer import HudiWriter

pytestmark = pytest.mark.spark

AWKWARD_DAY = "zürich: #1! \\=\U0001f600"
POLICIES = PolicySet.from_json(
    [
        {"partitionSpec": "day=*/", "policy": "KEEP_BY_TIME", "policyValue": 30, "default": True},
        {"partitionSpec": "day=2026-11-01/", "policy": "KEEP_BY_TIME", "policyValue": 365, "clock": "created"},
        {"partitionSpec": f"day={AWKWARD_DAY}/", "policy": "KEEP_BY_TIME", "policyValue": 7},
        {"partitionSpec": "/", "policy": "KEEP_BY_SIZE", "policyValue": 10**15, "allowEmptying": True},
    ]
)
PIECES = [
    *"ab=: #!\t\f\\\\\\", "\n", "\r", "\r\n", "\\\n", "\\\r\n", "\n\n", "\\u00e9", "\\uD83D\\uDE00", "\\u12", "\\u",
    "é", "\\t", "\\=", "key=value\n", "# comment\n", "  ",
]  # fmt: skip


def rows(commit: int) -> list[list[object]]:
    return [[f"{day}-{commit}", day, float(commit), commit] for day in ("2026-11-01", "2026-11-02")]


def named(properties: dict[str, str] | None) -> dict[str, str] | None:
    """Without the entry that has no key: Java makes one of a backslash alone at the end of a file."""
    return properties and {key: value for key, value in properties.items() if key}


def without_sources(policies: PolicySet) -> list[dict[str, object]]:
    return [{key: one for key, one in policy.items() if key != "source"} for policy in policies.to_json()]


def kept(path: Path) -> list[dict[str, object]]:
    workspace = maintenance.open_workspace(str(path))
    return without_sources(maintenance.show_policies(workspace))


@pytest.mark.parametrize(("version", "upgraded_by"), [(6, 9), (8, None), (9, None)])
def test_policies_outlive_what_a_release_does(
    version: int, upgraded_by: int | None, tmp_path: Path, writer_of: Callable[[int], HudiWriter]
) -> None:
    """It reads and writes, switches the metadata table on, and a newer release upgrades the table."""
    writer, path = writer_of(version), tmp_path / "trips"
    writer.insert(path, rows(1), hoodie__metadata__enable="false")
    before = HudiTable.open(str(path)).config.properties
    workspace = maintenance.open_workspace(str(path))
    assert maintenance.set_policies(workspace, POLICIES).is_changed
    expected = without_sources(POLICIES)
    written = workspace.table.storage.read_bytes(PROPERTIES_PATH)
    assert expected == kept(path)

    assert {"day=2026-11-01": 1, "day=2026-11-02": 1} == writer.counts(path), "it reads"
    writer.upsert(path, rows(2), hoodie__metadata__enable="true")
    table = HudiTable.open(str(path))
    assert "files" in table.config.metadata_partitions, "it switched the metadata table on"
    assert written != table.storage.read_bytes(PROPERTIES_PATH), "so it has rewritten the file"
    assert (version, before[CHECKSUM_KEY]) == (table.config.table_version, table.config.properties[CHECKSUM_KEY])
    assert expected == kept(path)

    if upgraded_by is not None:
        newer = writer_of(upgraded_by)
        newer.upsert(path, rows(3), hoodie__metadata__enable="true")
        assert upgraded_by == HudiTable.open(str(path)).config.table_version
        assert expected == kept(path)
        writer = newer
    assert 2 * (3 if upgraded_by else 2) == sum(writer.counts(path).values())
    assert not maintenance.set_policies(maintenance.open_workspace(str(path)), POLICIES).is_changed


def test_java_reads_and_writes_as_we_think_it_does(writer_of: Callable[[int], HudiWriter]) -> None:
    """The oracle of the property tests, and our reader and writer, against the JVM's own class."""
    chosen = random.Random(65)  # noqa: S311 a seeded choice of examples
    texts = ["".join(chosen.choices(PIECES, k=chosen.randint(0, 25))) for _ in range(400)]
    # Half a character does not come through the gateway to the JVM.
    texts = [text for text in texts if "\ufffd" not in str(java_reference.load(text))]
    words = ["".join(chosen.choices([*" \t\n\\=:#!aé\U0001f600\x7f", "\x00"], k=5)) for _ in range(200)]
    values = [{word: other} for word, other in zip(words[::2], words[1::2], strict=True)]
    writer = writer_of(9)

    assert [named(java_reference.load(text)) for text in texts] == [named(one) for one in writer.java_load(texts)]
    assert [str(PropertiesFile().with_changes(set=one)) for one in values] == writer.java_store(values)
    assert values == writer.java_load([str(PropertiesFile().with_changes(set=one)) for one in values])
