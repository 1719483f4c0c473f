"""A digest of all record keys of data files, whatever their order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from airflow_hudi_maint.core.errors import CorruptTableError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.storage.filesystem import Storage

KEY_COLUMN: Final = "_hoodie_record_key"

_BITS = 128
_BATCH_ROWS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDigest:
    """How many keys there are, and the sum of their 128-bit hashes: equal sets in any order have equal digests.

    A key that stands there twice counts twice. Two different sets have the same digest by chance once in 2**128.
    """

    count: int = 0
    total: int = 0

    def __add__(self, other: KeyDigest) -> KeyDigest:
        return KeyDigest(count=self.count + other.count, total=(self.total + other.total) % (1 << _BITS))

    def __str__(self) -> str:
        return f"{self.total:032x}"


def key_digest(storage: Storage, *, path: str) -> KeyDigest | None:
    """Digest the keys of one Parquet file, a batch of rows at a time; None where rows have no key column of Hudi's.

    About a million keys a second on one core. Raises FileNotFoundError, StorageError or CorruptTableError.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    count, total = 0, 0
    with storage.open_input(path) as source:
        try:
            file = pq.ParquetFile(source, pre_buffer=False)
            if KEY_COLUMN not in file.schema_arrow.names:
                return None
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[KEY_COLUMN]):
                keys = batch.column(0).to_pylist()
                count += len(keys)
                total += sum(map(_hash, keys))
        except pa.ArrowException as error:
            raise CorruptTableError(f"{storage.join(path)} is no Parquet file that can be read: {error}") from error
    return KeyDigest(count=count, total=total % (1 << _BITS))


def _hash(key: str | None) -> int:
    data = b"\xff" if key is None else key.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=_BITS // 8).digest(), "big")
