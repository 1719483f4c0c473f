"""What a file is, by its name and by its first bytes."""

from __future__ import annotations

from airflow_hudi_maint.core.model.merge_settings import Codec, FileFormat, FileKind

_FORMATS = {
    "parquet": FileFormat.PARQUET,
    "parq": FileFormat.PARQUET,
    "pq": FileFormat.PARQUET,
    "orc": FileFormat.ORC,
    "csv": FileFormat.CSV,
    "tsv": FileFormat.CSV,
    "json": FileFormat.JSON,
    "jsonl": FileFormat.JSON,
    "ndjson": FileFormat.JSON,
}
_CODECS = {
    "gz": Codec.GZIP,
    "gzip": Codec.GZIP,
    "zst": Codec.ZSTD,
    "zstd": Codec.ZSTD,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
}
_INSIDE = frozenset(("snappy", "gz", "gzip", "zstd", "zlib", "lz4", "lzo", "brotli", "uncompressed", "none"))
"""What Spark writes before ``.parquet`` and ``.orc``."""
_BINARY = frozenset((FileFormat.PARQUET, FileFormat.ORC))
_KINDS: dict[tuple[str, str], FileKind | None] = {}


def is_hidden(name: str) -> bool:
    """Whether readers pass over a name, by Spark's rule: a leading dot, or underscore without a partition's ``=``."""
    first = name[0]
    return first == "." or (first == "_" and "=" not in name) or name.endswith("._COPYING_")


def kind_of(name: str) -> FileKind | None:
    """The kind of a file by its name; None for one that is not merged.

    >>> kind_of("part-0.csv.gz").extension, kind_of("part-0.snappy.parquet").extension, kind_of("README.txt")
    ('.csv.gz', '.snappy.parquet', None)
    """
    head, dot, last = name.rpartition(".")
    if not dot:
        return None
    before = head.rpartition(".")[2] if "." in head else ""
    key = (before, last)
    try:
        return _KINDS[key]
    except KeyError:
        kind = _kind(before, last)
        if kind is not None or len(_KINDS) < 1024:  # noqa: PLR2004 names may vary without end
            _KINDS[key] = kind
        return kind


def _kind(before: str, last: str) -> FileKind | None:
    found = _FORMATS.get(last.lower())
    if found is not None:
        extension = f".{before}.{last}" if found in _BINARY and before.lower() in _INSIDE else f".{last}"
        return FileKind(format=found, codec=Codec.NONE, extension=extension)
    codec, text = _CODECS.get(last.lower()), _FORMATS.get(before.lower())
    if codec is None or text is None or text in _BINARY:
        return None
    return FileKind(format=text, codec=codec, extension=f".{before}.{last}")


_MAGIC = {
    b"PAR1": "Parquet",
    b"PARE": "encrypted Parquet",
    b"ORC": "ORC",
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "LZ4",
    b"\xff\x06\x00\x00sNaPpY": "framed snappy",
    b"BZh": "bzip2",
    b"PK\x03\x04": "a zip archive",
    b"Obj\x01": "Avro",
    b"\xfe\xff": "UTF-16",
    b"\xff\xfe": "UTF-16",
}
_FIRST_BYTES = frozenset(magic[0] for magic in _MAGIC)
_EXPECTED = {
    FileFormat.PARQUET: ("Parquet",),
    FileFormat.ORC: ("ORC",),
    Codec.GZIP: ("gzip",),
    Codec.ZSTD: ("zstd",),
    Codec.LZ4: ("LZ4", ""),  # Hadoop's own frame begins with a length
    Codec.SNAPPY: ("",),
    Codec.NONE: ("",),
}


def wrong_content(kind: FileKind, *, head: bytes) -> str:
    """Say why the first bytes of a file (12 will do) are not those of its kind; empty when they are.

    An empty file is right for text without compression alone.

    >>> wrong_content(kind_of("a.csv"), head=b"PAR1")
    'it is named .csv and holds Parquet'
    """
    binary = kind.format in _BINARY
    expected = _EXPECTED[kind.format] if binary else _EXPECTED[kind.codec]
    if not head:
        return "" if not binary and kind.codec is Codec.NONE else "it has no bytes"
    found = ""
    if head[0] in _FIRST_BYTES:
        found = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")
    if found in expected:
        return ""
    return f"it is named {kind.extension} and holds {found or 'something else'}"
