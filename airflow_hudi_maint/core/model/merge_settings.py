"""How the small files of a plain directory are merged, and which kinds of files there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, get_args

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.document import Json, JsonObject

OnUnreadable = Literal["fail", "skip"]
CsvHeader = Literal["detect", "yes", "no"]

_MIB = 1024 * 1024
_LEAST = {
    "target_file_bytes": 1,
    "small_file_bytes": 1,
    "min_input_files": 2,
    "min_age_seconds": 0,
    "trash_days": 0,
    "parallel_groups": 1,
}


class FileFormat(StrEnum):
    """What the rows of a file are written in."""

    PARQUET = "parquet"
    ORC = "orc"
    CSV = "csv"
    JSON = "json"


class Codec(StrEnum):
    """What a whole text file is compressed with; Parquet and ORC compress inside, and have ``NONE`` here."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"
    SNAPPY = "snappy"
    LZ4 = "lz4"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileKind:
    """What may go into one file together: format, codec, and the extension as it is written (``.csv.gz``)."""

    format: FileFormat
    codec: Codec
    extension: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSettings:
    """How a plan to merge is made and carried out; sizes in bytes on disk.

    A file below ``small_file_bytes`` is merged with its neighbours by name until a merged file would pass
    ``target_file_bytes``. A file that was written less than ``min_age_seconds`` ago is left alone. With ``keep_order``
    a file that stays ends a group, so that rows keep their order by file name over the whole directory; without it
    groups pass over it. ``formats`` empty means all. ``include`` and ``exclude`` are globs on paths below the root.
    ``max_groups`` and ``max_bytes`` (None: no limit) bound one run. ``trash_days`` is how long inputs can be put back.

    Of CSV: ``csv_header`` ``detect`` refuses where it cannot tell; ``csv_quote`` empty means that nothing is quoted.
    Raises InvalidSettingError.
    """

    target_file_bytes: int = 128 * _MIB
    small_file_bytes: int = 64 * _MIB
    min_input_files: int = 2
    min_age_seconds: int = 900
    formats: tuple[str, ...] = ()
    recursive: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    keep_order: bool = True
    max_groups: int | None = None
    max_bytes: int | None = None
    trash_days: int = 7
    on_unreadable: OnUnreadable = "fail"
    parallel_groups: int = 2
    csv_header: CsvHeader = "detect"
    csv_delimiter: str | None = None
    csv_quote: str = '"'
    csv_escape: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise InvalidSettingError(f"{name}={getattr(self, name)} is too small; expected at least {least}")
        for name in ("max_groups", "max_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSettingError(f"{name}={value} is too small; expected at least 1, or None for no limit")
        if self.target_file_bytes < self.small_file_bytes:
            raise InvalidSettingError(
                f"target_file_bytes={self.target_file_bytes} is below small_file_bytes={self.small_file_bytes}: merged "
                "files would be small again; raise the target or lower the small-file limit"
            )
        unknown = sorted(set(self.formats) - {str(one) for one in FileFormat})
        if unknown:
            known = ", ".join(FileFormat)
            raise InvalidSettingError(f"formats has {', '.join(map(repr, unknown))}; expected some of {known}")
        for name, words in (("on_unreadable", get_args(OnUnreadable)), ("csv_header", get_args(CsvHeader))):
            if getattr(self, name) not in words:
                raise InvalidSettingError(f"{name}={getattr(self, name)!r}; expected one of {', '.join(words)}")
        self._check_csv()

    def _check_csv(self) -> None:
        for name in ("csv_delimiter", "csv_quote", "csv_escape"):
            value = getattr(self, name)
            if value and (len(value) != 1 or not value.isascii() or value in "\r\n"):
                raise InvalidSettingError(f"{name}={value!r}; expected one ASCII character")
        if self.encoding is None:
            return
        try:
            is_plain = '"\r\n,;\\|\t'.encode(self.encoding) == b'"\r\n,;\\|\t'
        except LookupError as error:
            raise InvalidSettingError(f"encoding={self.encoding!r} is unknown; name one that Python knows") from error
        if not is_plain:
            raise InvalidSettingError(
                f"encoding={self.encoding!r} does not write line ends as ASCII does, so files cannot be joined as "
                "bytes; convert them to UTF-8 first"
            )

    @property
    def min_age(self) -> timedelta:
        """How old a file must be."""
        return timedelta(seconds=self.min_age_seconds)

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> MergeSettings:
        """Read what :meth:`to_json` wrote, or what a DAG's parameters give; an unknown name is refused."""
        names = {one.name for one in fields(cls)}
        unknown = sorted(set(value) - names)
        if unknown:
            raise InvalidSettingError(
                f"{', '.join(map(repr, unknown))} is no setting of a merge; expected some of {', '.join(sorted(names))}"
            )
        read: dict[str, Json] = {name: tuple(one) if isinstance(one, list) else one for name, one in value.items()}
        return cls(**read)  # type: ignore[arg-type]  # checked above and in __post_init__
