"""Read the golden tables: their names, their files on disk, and what the JVM said of them.

Standard library only, so that every test tier can use it.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

# Checksums are Hadoop's own bookkeeping on a local disk and no object store has them; a heartbeat is the sign of
# a writer that is still alive, which the writer of a golden table never is.
_NOT_PACKED = ".heartbeat"
_INNER = "table.zip"
_UNIX = 3
_ZIP_EPOCH = 315_532_800


def golden_names() -> list[str]:
    """Return the name of every golden table, sorted."""
    return sorted(path.stem for path in HERE.glob("*.zip"))


def truth(name: str) -> dict[str, Any]:
    """Return what the JVM that wrote the table says of it; README.md describes the keys."""
    loaded: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def unpack(name: str, target_dir: Path) -> Path:
    """Write the table's files to ``target_dir/name`` and return that path.

    Modification times are restored to the millisecond from the truth, because they are the completion times of a
    table of version 6 and a zip holds only every second one. A second call writes the same files again.
    """
    table_dir = target_dir / name
    with zipfile.ZipFile(HERE / f"{name}.zip") as outer, zipfile.ZipFile(BytesIO(outer.read(_INNER))) as inner:
        inner.extractall(table_dir)
    for relative_path, (_, modified_ms) in truth(name)["files"].items():
        modified_ns = modified_ms * 1_000_000
        os.utime(table_dir / relative_path, ns=(modified_ns, modified_ns))
    return table_dir


def packed_files(table_dir: Path) -> dict[str, tuple[int, int]]:
    """Return size in bytes and modification time in milliseconds of each file that belongs in a golden table."""
    files = {}
    for path in sorted(table_dir.rglob("*")):
        if path.is_file() and _belongs(path, table_dir):
            stat = path.stat()
            files[path.relative_to(table_dir).as_posix()] = (stat.st_size, stat.st_mtime_ns // 1_000_000)
    return files


def pack(table_dir: Path, zip_path: Path) -> None:
    """Write the table's files to a zip whose form depends on nothing but them; empty folders are left out.

    The files are stored in an inner zip and that is compressed as one, to a quarter of what a plain zip takes: Hudi
    repeats a schema of kilobytes in every small file.
    """
    stored = BytesIO()
    with zipfile.ZipFile(stored, "w") as inner:
        for relative_path in packed_files(table_dir):
            path = table_dir / relative_path
            inner.writestr(_entry(relative_path, modified=path.stat().st_mtime), path.read_bytes())
    with zipfile.ZipFile(zip_path, "w") as outer:
        entry = _entry(_INNER, modified=_ZIP_EPOCH)
        outer.writestr(entry, stored.getvalue(), compress_type=zipfile.ZIP_LZMA)


def _belongs(path: Path, table_dir: Path) -> bool:
    parts = path.relative_to(table_dir).parts
    return path.suffix != ".crc" and _NOT_PACKED not in parts


def _entry(name: str, *, modified: float) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=time.gmtime(modified)[:6])
    entry.create_system = _UNIX
    entry.external_attr = 0o100644 << 16
    return entry
