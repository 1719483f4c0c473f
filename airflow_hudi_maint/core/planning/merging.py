"""Which files of a plain directory are merged with which: pure functions from listings to groups.

Rows keep their order: a group is made of neighbours by name, and its output sorts where they were.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias, cast

from airflow_hudi_maint.core.model.merge_plan import InputFile, LeftAlone, MergeGroup, PlannedDirectory
from airflow_hudi_maint.core.model.merge_settings import FileKind, MergeSettings
from airflow_hudi_maint.core.model.units import counted, human_bytes
from airflow_hudi_maint.core.planning.merge_globs import PathFilter
from airflow_hudi_maint.core.planning.merge_kinds import is_hidden, kind_of

ListedFile: TypeAlias = tuple[str, bool, int, int | None]
"""Name, whether it is a directory, bytes, and nanoseconds since 1970 of its last writing: an entry of a listing."""

_Found: TypeAlias = tuple[str, int, int | None, str | bool]
"""An :class:`InputFile` that may be merged; of a file that stays, its reason stands in the place of the last field."""

_SHOWN = 3
_MOST_NAME_BYTES = 255
"""What disks and HDFS take, but for the longest keys of object stores."""
_OUTPUT = re.compile(r"-merged-[0-9a-f]{8}(?=\.)")
_GROWING = "written less than {seconds} seconds ago (min_age_seconds): it may still grow"
_UNDATED = "the storage does not tell when it was written; min_age_seconds=0 merges it all the same"


class _Left:
    """Collects what is left alone, by reason."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[str, int]]] = {}

    def add(self, reason: str, name: str, size: int) -> None:
        self._found.setdefault(reason, []).append((name, size))

    def all(self) -> tuple[LeftAlone, ...]:
        return tuple(
            LeftAlone(
                reason, len(files), sum(size for _, size in files), tuple(sorted(name for name, _ in files)[:_SHOWN])
            )
            for reason, files in sorted(self._found.items())
        )


def plan_directory(
    path: str,
    *,
    entries: Iterable[ListedFile],
    links: Sequence[str] = (),
    settings: MergeSettings,
    now: datetime,
) -> PlannedDirectory:
    """Group the small files of one directory level; subdirectories in ``entries`` are passed over.

    A file exactly as large as ``small_file_bytes`` is not small; one exactly ``min_age_seconds`` old is old enough.

    >>> from datetime import UTC, datetime
    >>> found = plan_directory(
    ...     "day=1",
    ...     entries=[("b.csv", False, 10, 0), ("a.csv", False, 20, 0), ("_SUCCESS", False, 0, 0)],
    ...     settings=MergeSettings(),
    ...     now=datetime(2026, 1, 1, tzinfo=UTC),
    ... )
    >>> [[one.name for one in group.inputs] for group in found.groups], [one.reason for one in found.left_alone]
    ([['a.csv', 'b.csv']], ['hidden: a marker, a checksum or a temporary file'])
    """
    left = _Left()
    for name in links:
        left.add("a symbolic link: what it leads to belongs to another place", name, 0)
    by_kind, checksums = _sorted_out(path, entries=entries, settings=settings, now=now, left=left)
    groups: list[MergeGroup] = []
    for kind in sorted(by_kind, key=lambda one: (one.extension, one.codec)):
        found = sorted(by_kind[kind])
        planner = _KindPlanner(path, kind=kind, files=found, checksums=checksums, settings=settings, left=left)
        groups.extend(planner.groups())
    return PlannedDirectory(path=path, groups=tuple(groups), left_alone=left.all())


def within_limits(directories: Iterable[PlannedDirectory], *, settings: MergeSettings) -> tuple[PlannedDirectory, ...]:
    """Leave the groups beyond ``max_groups`` or ``max_bytes`` to the next run, in the order of the directories.

    A first group larger than ``max_bytes`` is taken all the same: otherwise no run would ever take it.
    """
    if settings.max_groups is None and settings.max_bytes is None:
        return tuple(directories)
    taken = size = 0
    bounded: list[PlannedDirectory] = []
    for directory in directories:
        kept: list[MergeGroup] = []
        left = _Left()
        for group in directory.groups:
            over = settings.max_bytes is not None and taken and size + group.input_bytes > settings.max_bytes
            if over or (settings.max_groups is not None and taken >= settings.max_groups):
                limit = "max_bytes" if over else "max_groups"
                for one in group.inputs:
                    left.add(f"beyond {limit}={getattr(settings, limit)} of one run; the next run takes it", *one[:2])
                continue
            kept.append(group)
            taken, size = taken + 1, size + group.input_bytes
        bounded.append(replace(directory, groups=tuple(kept), left_alone=directory.left_alone + left.all()))
    return tuple(bounded)


def _sorted_out(
    path: str, *, entries: Iterable[ListedFile], settings: MergeSettings, now: datetime, left: _Left
) -> tuple[dict[FileKind, list[_Found]], set[str]]:
    """Files by kind, each with why it must stay or ``""``, and the names that have a checksum beside them."""
    youngest = int((now - settings.min_age).timestamp() * 1e9)
    wanted = PathFilter(include=settings.include, exclude=settings.exclude)
    small, must_be_old, is_filtered = settings.small_file_bytes, settings.min_age_seconds > 0, wanted.is_set
    by_kind: dict[FileKind, list[_Found]] = {}
    make = tuple.__new__
    by_suffix: dict[str, list[_Found] | None] = {}
    checksums: set[str] = set()
    growing = _GROWING.format(seconds=settings.min_age_seconds)
    large = f"not small: {human_bytes(small)} (small_file_bytes) or more"
    for name, is_directory, size, modified in entries:  # a hot loop: 100,000 files in the time of their listing
        if is_directory:
            continue
        if name[0] in "._" and is_hidden(name):
            if name.endswith(".crc"):
                checksums.add(name[1:-4])
            else:
                left.add("hidden: a marker, a checksum or a temporary file", name, size)
            continue
        dot = name.find(".")
        suffix = name[dot:] if dot >= 0 else ""
        try:
            found = by_suffix[suffix]
        except KeyError:
            found = by_suffix[suffix] = _files_of(kind_of(name), by_kind=by_kind, settings=settings)
        if found is None:
            left.add(_why_unknown(kind_of(name), settings=settings), name, size)
        elif is_filtered and not wanted.takes(f"{path}/{name}" if path else name):
            found.append((name, size, modified, "left out by include and exclude"))
        elif size >= small:
            found.append((name, size, modified, large))
        elif must_be_old and (modified is None or modified > youngest):
            found.append((name, size, modified, _UNDATED if modified is None else growing))
        else:
            found.append(make(InputFile, (name, size, modified, False)))
    return by_kind, checksums


def _files_of(
    kind: FileKind | None, *, by_kind: dict[FileKind, list[_Found]], settings: MergeSettings
) -> list[_Found] | None:
    """Where files of a kind are collected; None for one that is not merged."""
    if kind is None or (settings.formats and kind.format not in settings.formats):
        return None
    return by_kind.setdefault(kind, [])


def _why_unknown(kind: FileKind | None, *, settings: MergeSettings) -> str:
    if kind is None:
        return "its extension is none of Parquet, ORC, CSV or JSON lines"
    return f"its format is {kind.format}, and formats={', '.join(settings.formats)}"


class _KindPlanner:
    """Groups the files of one kind in one directory, sorted by name."""

    def __init__(
        self,
        path: str,
        *,
        kind: FileKind,
        files: Sequence[_Found],
        checksums: Collection[str],
        settings: MergeSettings,
        left: _Left,
    ) -> None:
        self._path, self._kind, self._files, self._checksums = path, kind, files, checksums
        self._settings, self._left = settings, left
        self._last_output = ""
        self._names = frozenset([one[0] for one in files])

    def groups(self) -> Iterator[MergeGroup]:
        for first, last, chosen in self._bins():
            group = self._group(first, last, chosen)
            if group is not None:
                yield group

    def _bins(self) -> Iterator[tuple[int, int, list[int]]]:
        """Indexes of the files of each group, with the first and the last."""
        chosen: list[int] = []
        total = 0
        target, keeps_order = self._settings.target_file_bytes, self._settings.keep_order
        for index, (name, size, _, reason) in enumerate(self._files):
            if reason:
                self._left.add(str(reason), name, size)
                if keeps_order and chosen:
                    yield chosen[0], chosen[-1], chosen
                    chosen, total = [], 0
                continue
            if chosen and total + size > target:
                yield chosen[0], chosen[-1], chosen
                chosen, total = [], 0
            chosen.append(index)
            total += size
        if chosen:
            yield chosen[0], chosen[-1], chosen

    def _group(self, first: int, last: int, chosen: Sequence[int]) -> MergeGroup | None:
        files = self._files
        reason = self._why_not(chosen)
        output = "" if reason else self._output_name(first, last, chosen)
        if not reason and not output:
            reason = (
                f"no name of {_MOST_NAME_BYTES} bytes for the merged file sorts where these are; "
                "keep_order=False needs no order"
            )
        if reason:
            for index in chosen:
                self._left.add(reason, files[index][0], files[index][1])
            return None
        self._last_output = output
        inputs = cast("tuple[InputFile, ...]", tuple([files[index] for index in chosen]))
        if self._checksums:
            inputs = tuple([one._replace(has_checksum=one.name in self._checksums) for one in inputs])
        return MergeGroup(directory=self._path, kind=self._kind, inputs=inputs, output_name=output)

    def _why_not(self, chosen: Sequence[int]) -> str:
        least = self._settings.min_input_files
        if len(chosen) < least:
            return f"too few neighbours to merge with: {counted(least, 'file')} (min_input_files) make a group"
        if all(_OUTPUT.search(self._files[index][0]) for index in chosen):
            return "merged before, and nothing new beside it"
        return ""

    def _output_name(self, first: int, last: int, chosen: Sequence[int]) -> str:
        """A name between those of the neighbours; empty when there is none.

        By the stem of the first input where that sorts right, else after the whole name of the first or last input.
        """
        files = self._files
        before = files[first - 1][0] if first else ""
        lower = max(before, self._last_output)
        upper = files[last + 1][0] if last + 1 < len(files) else None
        digest = hashlib.blake2s(digest_size=4)
        taken = [files[index] for index in chosen]
        digest.update("/".join([one[0] for one in taken]).encode("utf-8", "surrogateescape"))
        digest.update(f"/{sum([one[1] for one in taken])}/{max([one[2] or 0 for one in taken])}".encode())
        mark = f"-merged-{digest.hexdigest()}{self._kind.extension}"
        for index in (first, last):
            name = files[index][0]
            stem = name.removesuffix(self._kind.extension)
            for start in (_OUTPUT.sub("", name).removesuffix(self._kind.extension), stem, name):
                output = f"{start}{mark}"
                fits = lower < output and (upper is None or output < upper)
                is_free = output not in self._names and len(os.fsencode(output)) <= _MOST_NAME_BYTES
                if is_free and (fits or not self._settings.keep_order):
                    return output
        return ""
