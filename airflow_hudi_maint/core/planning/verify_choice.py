"""Which partitions of a clustering are read to verify it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from airflow_hudi_maint.core.model.verification import VerifyMode, VerifySettings


def chosen_mode(file_counts: Mapping[str, int], settings: VerifySettings) -> VerifyMode:
    """What is done of ``auto``: all files while there are no more than the settings allow, else a sample.

    >>> chosen_mode({"day=1": 3, "day=2": 4}, VerifySettings(max_files=5))
    <VerifyMode.SAMPLE: 'sample'>
    """
    if settings.mode is not VerifyMode.AUTO:
        return settings.mode
    return VerifyMode.FULL if sum(file_counts.values()) <= settings.max_files else VerifyMode.SAMPLE


def chosen_partitions(file_counts: Mapping[str, int], settings: VerifySettings, *, instant: str) -> tuple[str, ...]:
    """The partitions whose files are read: all of them, none, or whole ones that fit within ``max_files``.

    Which ones a sample takes depends on the instant and their names alone: a retry reads the same, and another
    clustering others. One that has more files than are left is passed over.

    >>> chosen_partitions({"a": 3, "b": 9, "c": 2}, VerifySettings(mode=VerifyMode.SAMPLE, max_files=5), instant="1")
    ('a', 'c')
    """
    mode = chosen_mode(file_counts, settings)
    if mode is VerifyMode.TIMELINE:
        return ()
    if mode is VerifyMode.FULL:
        return tuple(sorted(file_counts))
    left = settings.max_files
    chosen = []
    for path in sorted(file_counts, key=lambda one: (_lot(f"{instant}/{one}"), one)):
        if file_counts[path] <= left:
            left -= file_counts[path]
            chosen.append(path)
    return tuple(sorted(chosen))


def _lot(text: str) -> bytes:
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
