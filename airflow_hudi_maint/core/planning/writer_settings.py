"""What the writers of a table are set to, as far as the table and the connection tell.

Hudi keeps most settings nowhere: they are options of each writer. What is looked at here are the write options of the
connection over ``hoodie.properties``, over Hudi's own defaults, which have been the same from 0.15 to 1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from airflow_hudi_maint.core.model.table_config import TIMELINE_LAYOUT_2_SINCE

KEEP_MIN_COMMITS = "hoodie.keep.min.commits"
KEEP_MAX_COMMITS = "hoodie.keep.max.commits"
CLEAN_POLICY = "hoodie.clean.policy"
CLEAN_COMMITS_RETAINED = "hoodie.clean.commits.retained"
FAILED_WRITES_POLICY = "hoodie.clean.failed.writes.policy"
COMPACT_DELTA_COMMITS = "hoodie.compact.inline.max.delta.commits"
METADATA_COMPACT_DELTA_COMMITS = "hoodie.metadata.compact.max.delta.commits"
SMALL_FILE_LIMIT = "hoodie.parquet.small.file.limit"
MAX_FILE_SIZE = "hoodie.parquet.max.file.size"
CLUSTERING_SMALL_FILE_LIMIT = "hoodie.clustering.plan.strategy.small.file.limit"
CLUSTERING_TARGET_BYTES = "hoodie.clustering.plan.strategy.target.file.max.bytes"
CLUSTERING_GROUP_BYTES = "hoodie.clustering.plan.strategy.max.bytes.per.group"

DEFAULT_NUMBERS: Mapping[str, int] = {
    KEEP_MIN_COMMITS: 20,
    KEEP_MAX_COMMITS: 30,
    CLEAN_COMMITS_RETAINED: 10,
    COMPACT_DELTA_COMMITS: 5,
    METADATA_COMPACT_DELTA_COMMITS: 10,
    SMALL_FILE_LIMIT: 100 * 1024**2,
    MAX_FILE_SIZE: 120 * 1024**2,
    CLUSTERING_SMALL_FILE_LIMIT: 300 * 1024**2,
    CLUSTERING_TARGET_BYTES: 1024**3,
    CLUSTERING_GROUP_BYTES: 2 * 1024**3,
}
_DEFAULT_TEXTS = {
    CLEAN_POLICY: "KEEP_LATEST_COMMITS",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
}
_FORMER_NAMES = {
    CLEAN_POLICY: "hoodie.cleaner.policy",
    CLEAN_COMMITS_RETAINED: "hoodie.cleaner.commits.retained",
    FAILED_WRITES_POLICY: "hoodie.cleaner.policy.failed.writes",
    "hoodie.clean.async.enabled": "hoodie.clean.async",
}
"""Names of releases before 1.0, which later ones still read."""


def key_for(key: str, *, table_version: int) -> str:
    """The name of a setting that every release reads which writes tables of this version.

    >>> key_for("hoodie.clean.policy", table_version=6), key_for("hoodie.clean.policy", table_version=9)
    ('hoodie.cleaner.policy', 'hoodie.clean.policy')
    """
    return _FORMER_NAMES.get(key, key) if table_version < TIMELINE_LAYOUT_2_SINCE else key


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterSettings:
    """Settings by Hudi's newest name for each; a value that is not given is Hudi's default.

    ``table_version`` decides by which name a setting is spoken of.
    """

    given: Mapping[str, str]
    table_version: int = 9

    def is_given(self, key: str) -> bool:
        """Whether the table or the connection has the key, by its newest name or a former one."""
        return bool(self._given(key))

    def text(self, key: str) -> str:
        """The value in capitals, as Hudi's enumerations are written; empty where there is none."""
        return (self._given(key) or _DEFAULT_TEXTS.get(key, "")).upper()

    def flag(self, key: str) -> bool:
        """Whether a switch is on."""
        return self.text(key) == "TRUE"

    def number(self, key: str) -> int:
        """A whole number; Hudi's default where what is given is none (:meth:`is_readable` says so)."""
        text = self._given(key)
        return int(text) if text and self.is_readable(key) else DEFAULT_NUMBERS[key]

    def is_readable(self, key: str) -> bool:
        """Whether what is given for a number is one."""
        text = self._given(key)
        return not text or (text.isascii() and text.isdecimal())

    def said(self, key: str) -> str:
        """The key and its number for a sentence, with a word where it is a guess.

        >>> WriterSettings(given={}).said("hoodie.keep.max.commits")
        "hoodie.keep.max.commits=30 (Hudi's default)"
        """
        return f"{self.name(key)}={self.number(key)}" + ("" if self.is_given(key) else " (Hudi's default)")

    def name(self, key: str) -> str:
        """The name to speak of a setting by: the one that is given, else the one that the table's writers read."""
        given = (one for one in (key, _FORMER_NAMES.get(key, "")) if self.given.get(one))
        return next(given, key_for(key, table_version=self.table_version))

    def _given(self, key: str) -> str:
        text = self.given.get(key) or self.given.get(_FORMER_NAMES.get(key, ""))
        return (text or "").strip()
