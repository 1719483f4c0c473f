"""Tell orphans from the files of the table, of its past and of writes in progress.

An old version or a replaced file is none: its instant is complete, and the cleaner knows it. An orphan is what a dead
writer or an incomplete rollback left, or what somebody else put there; no cleaner ever takes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_hudi_maint.core.model.file_slice import instant_in_file_name
from airflow_hudi_maint.core.model.instant import EARLIEST_INSTANT
from airflow_hudi_maint.core.model.orphan import OrphanFile, OrphanReason
from airflow_hudi_maint.core.model.timeline import Timeline
from airflow_hudi_maint.core.storage.entries import Entry

_METAFILE = ".hoodie_partition_metadata"


def find_orphans(partition_path: str, entries: Iterable[Entry], *, timeline: Timeline) -> Iterator[OrphanFile]:
    """Yield the orphans of one partition, in the order of its listing, which must be younger than ``timeline``.

    Not counted, because it cannot be told: a file whose instant is older than the active timeline (Hudi too takes it
    for archived), and one younger than all that ``timeline`` has seen (its writer may have begun since).
    """
    known = {one.requested_time for one in timeline}
    newest = max((one.ordering_time for one in timeline), default=EARLIEST_INSTANT)
    for name, is_directory, size_bytes, modified_ns in entries:
        if is_directory or name.startswith(_METAFILE) or _is_checksum(name):
            continue
        instant = instant_in_file_name(name)
        if instant is not None and (instant in known or instant < timeline.start or instant > newest):
            continue
        yield OrphanFile(
            partition_path=partition_path,
            name=name,
            bytes=size_bytes,
            modified_ns=modified_ns,
            reason=OrphanReason.UNKNOWN_NAME if instant is None else OrphanReason.UNKNOWN_INSTANT,
            instant=instant,
        )


def _is_checksum(name: str) -> bool:
    # Hadoop keeps one beside each file of a local disk.
    return name.startswith(".") and name.endswith(".crc")
