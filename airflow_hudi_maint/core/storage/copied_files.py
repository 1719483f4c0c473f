"""Read from footers what copying files depends on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.planning.small_file_copying import UNTYPED, CopiedFile
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.footers import read_footer

_FILTER_TYPE = b"hoodie_bloom_filter_type_code"
_FILTER = b"org.apache.hudi.bloomfilter"

_log = logging.getLogger(__name__)


def copied_files(storage: Storage, *, paths: Sequence[str]) -> tuple[CopiedFile | None, ...]:
    """What each footer says, in the threads of the storage; None, with a warning, for one that cannot be read."""
    return storage.concurrently(lambda path: _copied(storage, path), paths)


def _copied(storage: Storage, path: str) -> CopiedFile | None:
    try:
        footer = read_footer(storage, path=path)
    except (CorruptTableError, FileNotFoundError) as error:
        _log.warning("Passed over a footer: %s", error)
        return None
    texts: dict[bytes, bytes] = footer.metadata or {}
    default = UNTYPED if _FILTER in texts else ""
    return CopiedFile(
        # The first line is the address of the object.
        schema=str(footer.schema).partition("\n")[2],
        filter_type=texts.get(_FILTER_TYPE, b"").decode("utf-8", "replace") or default,
        row_group_bytes=tuple(
            sum(group.column(number).total_compressed_size for number in range(group.num_columns))
            for group in map(footer.row_group, range(footer.num_row_groups))
        ),
    )
