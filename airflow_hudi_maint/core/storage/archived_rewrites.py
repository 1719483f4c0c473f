"""Which archived writes only moved rows: what the names of clustered and compacted files do not tell."""

from __future__ import annotations

import logging

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.storage.archive import ArchivedInstant
from airflow_hudi_maint.core.storage.table import HudiTable

_MOST_BYTES = 64 * 1024 * 1024
"""Up to here the archive of a table of version 6 is asked, which can only be read as a whole."""

_log = logging.getLogger(__name__)


class ArchivedRewrites:
    """Tells of archived instants whether they only moved rows; ``until`` is where the active timeline starts.

    The archive is opened when one is asked about, from table version 8 on no further back than that. An instant that
    it does not tell of is taken for a write of new data: too young a date keeps a partition.
    """

    def __init__(self, table: HudiTable, *, until: str) -> None:
        self._table = table
        self._since = until
        self._found: dict[str, ArchivedInstant] = {}
        self._known: dict[str, bool] = {}

    def holds(self, instant_time: str) -> bool:
        """Whether an archived instant is a clustering or a compaction."""
        known = self._known.get(instant_time)
        if known is None:
            known = self._known[instant_time] = self._is_rewrite(instant_time)
        return known

    def _is_rewrite(self, instant_time: str) -> bool:
        try:
            if instant_time < self._since:
                self._load(instant_time)
            found = self._found.get(instant_time)
            return found is not None and found.commit_metadata().rewrites_only
        except CorruptTableError as error:
            _log.warning("The archive does not tell whether %s changed data: %s", instant_time, error)
            return False

    def _load(self, since: str) -> None:
        until, self._since = self._since, ""  # a broken archive is not tried again
        if self._table.config.has_completion_times:
            archived = self._table.archived(since=since, until=until)
        elif (size := sum(one.bytes for one in self._table.archive_files())) <= _MOST_BYTES:
            archived, since = self._table.archived(), ""
        else:
            _log.warning("The archive of %s has %d bytes and is not asked for clusterings", self._table.base_path, size)
            return
        self._found.update(
            {one.instant.requested_time: one for one in archived if self._table.may_rewrite(one.instant)}
        )
        self._since = since
