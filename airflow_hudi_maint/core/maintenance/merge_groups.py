"""Merge one group: write beside, verify, and swap only what is still as it was planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from airflow_hudi_maint.core.errors import HudiMaintError, PlanOutdatedError
from airflow_hudi_maint.core.maintenance.merge_workspace import MergeWorkspace
from airflow_hudi_maint.core.maintenance.merge_writers import GroupWriter
from airflow_hudi_maint.core.merging.group_writing import verify_group
from airflow_hudi_maint.core.model.merge_plan import InputFile, MergeGroup
from airflow_hudi_maint.core.model.merge_report import MergedGroup
from airflow_hudi_maint.core.model.merge_settings import MergeSettings
from airflow_hudi_maint.core.model.units import counted, human_bytes, human_seconds
from airflow_hudi_maint.core.storage.merge_journal import Swap, SwapFile, trash_folder
from airflow_hudi_maint.core.storage.merge_lease import Lease
from airflow_hudi_maint.core.storage.merge_swap import begin, finish

_FEWEST = 2


@dataclass(frozen=True, kw_only=True)
class GroupMerger:
    """Merges the groups of one run; safe to call from several threads, for different groups."""

    workspace: MergeWorkspace
    settings: MergeSettings
    writer: GroupWriter
    lease: Lease
    run: str
    stop: threading.Event = field(default_factory=threading.Event)

    def merge(self, group: MergeGroup, *, number: int) -> MergedGroup:
        """Merge a group and put its inputs aside; see :meth:`_merge` for the errors."""
        try:
            return self._merge(group, number=number)
        except FileNotFoundError as error:
            self.lease.check()  # whoever took over deleted what was staged
            self._check_unchanged(group)
            raise PlanOutdatedError(f"{error}, and was there a moment ago; run again") from error

    def _merge(self, group: MergeGroup, *, number: int) -> MergedGroup:
        """Merge a group and put its inputs aside.

        Raises PlanOutdatedError when an input changed, grew or is gone, or too few can be read; UnreadableFileError,
        SchemaConflictError, VerificationError, StorageError. In each case the inputs are as they were.
        """
        started = time.monotonic()
        storage = self.workspace.storage
        staged = self.writer.staged_path(number)
        self._check_unchanged(group)
        try:
            merged = self.writer.write(group, number=number)
            inputs = self._read_ones(group, skipped=merged.skipped)
            verify_group(storage, group, staged, written=merged, inputs=inputs)
            storage.permit_as(staged, [group.path_of(one.name) for one in inputs])
            self._check_unchanged(group)
            self.lease.check()
        except BaseException:
            with suppress(
                HudiMaintError, FileNotFoundError
            ):  # what went wrong before says more; the next run tidies up
                storage.delete(staged)
            raise
        swap_seconds = self._swap(group, staged, number=number, size=merged.bytes, inputs=inputs)
        done = MergedGroup(
            directory=group.directory,
            output=group.output_name,
            input_files=len(inputs),
            input_bytes=sum(one.bytes for one in inputs),
            output_bytes=merged.bytes,
            rows=getattr(merged, "rows", None),
            method=merged.method,
            reason=getattr(merged, "reason", ""),
            seconds=time.monotonic() - started,
            swap_seconds=swap_seconds,
            skipped=tuple(merged.skipped),
            notes=tuple(merged.notes),
        )
        self.workspace.log(
            f"Merged {counted(done.input_files, 'file')} ({human_bytes(done.input_bytes)}) into "
            f"{storage.join(group.output_path)} ({human_bytes(done.output_bytes)}) by {done.method}, in "
            f"{human_seconds(done.seconds)}"
        )
        return done

    def is_due(self, group: MergeGroup) -> bool:
        """Whether every input still is as it was planned; :meth:`merge` says why not."""
        try:
            self._check_unchanged(group)
        except PlanOutdatedError:
            return False
        return True

    def _read_ones(self, group: MergeGroup, *, skipped: Sequence[str]) -> list[InputFile]:
        inputs = [one for one in group.inputs if group.path_of(one.name) not in skipped]
        if len(inputs) < _FEWEST:
            path = self.workspace.storage.join(group.output_path)
            raise PlanOutdatedError(f"Of the inputs of {path}, {len(inputs)} can be read")
        return inputs

    def _check_unchanged(self, group: MergeGroup) -> None:
        """Raise PlanOutdatedError unless every input is there, with the size and the time that it was planned with."""
        storage = self.workspace.storage
        here = storage.look(group.directory, [group.output_name, *(one.name for one in group.inputs)])
        for one in group.inputs:
            entry = here.get(one.name)
            path = storage.join(group.path_of(one.name))
            if entry is None:
                raise PlanOutdatedError(f"{path} is gone since the plan was made; plan again")
            if entry.bytes != one.bytes or entry.modified_ns != one.modified_ns:
                raise PlanOutdatedError(
                    f"{path} changed since the plan was made ({one.bytes} bytes then, {entry.bytes} now): it is still "
                    "written; plan again later, or raise min_age_seconds"
                )
        if group.output_name in here:
            raise PlanOutdatedError(f"{storage.join(group.output_path)} is there already; plan again")

    def _swap(self, group: MergeGroup, staged: str, *, number: int, size: int, inputs: Sequence[InputFile]) -> float:
        folder = trash_folder(self.run)
        put_aside: list[SwapFile] = []
        for index, one in enumerate(inputs):
            aside = f"{folder}/{number:06}-{index:06}"
            put_aside.append(
                SwapFile(name=one.name, aside=f"{aside}.trashed", bytes=one.bytes, modified_ns=one.modified_ns)
            )
            if one.has_checksum:
                put_aside.append(SwapFile(name=f".{one.name}.crc", aside=f"{aside}.crc", bytes=0, is_checksum=True))
        swap = Swap(
            run=self.run,
            number=number,
            directory=group.directory,
            output=SwapFile(name=group.output_name, aside=staged, bytes=size),
            inputs=tuple(put_aside),
            trash_days=self.settings.trash_days,
        )
        storage = self.workspace.storage
        begin(storage, swap)
        started = time.monotonic()
        if not finish(storage, swap):
            raise PlanOutdatedError(
                f"An input of {storage.join(group.output_path)} changed while it was put aside; all is as it was"
            )
        return time.monotonic() - started
