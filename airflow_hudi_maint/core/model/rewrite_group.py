"""The groups of a clustering plan: which file slices are rewritten together, and into how many files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_hudi_maint.core.model.document import JsonObject
from airflow_hudi_maint.core.model.file_slice import FileSlice


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedInput:
    """One file slice as it was when it was planned: its files by name, and their bytes.

    ``base_file_name`` is empty for a slice of log files only. ``log_file_names`` are in the order of the slice.
    """

    file_id: str
    base_file_name: str
    base_bytes: int
    log_file_names: tuple[str, ...] = ()
    log_bytes: int = 0

    @classmethod
    def of(cls, file_slice: FileSlice) -> PlannedInput:
        """Note a slice's files."""
        return cls(
            file_id=file_slice.file_id,
            base_file_name=file_slice.base_file.name if file_slice.base_file else "",
            base_bytes=file_slice.base_bytes,
            log_file_names=tuple(one.name for one in file_slice.log_files),
            log_bytes=file_slice.log_bytes,
        )

    @property
    def total_bytes(self) -> int:
        """Bytes of base and log files."""
        return self.base_bytes + self.log_bytes

    def to_json(self) -> JsonObject:
        """The row of the JSON document."""
        return {
            "file_id": self.file_id,
            "base_file": self.base_file_name,
            "base_bytes": self.base_bytes,
            "log_files": list(self.log_file_names),
            "log_bytes": self.log_bytes,
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> PlannedInput:
        """Read what :meth:`to_json` wrote."""
        return cls(
            file_id=row["file_id"],
            base_file_name=row["base_file"],
            base_bytes=row["base_bytes"],
            log_file_names=tuple(row["log_files"]),
            log_bytes=row["log_bytes"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """File slices of one partition that are rewritten together; Hudi's ``HoodieClusteringGroup``."""

    partition_path: str
    inputs: tuple[PlannedInput, ...]
    output_file_count: int

    @property
    def input_bytes(self) -> int:
        """The bytes that are read: base and log files."""
        return sum(one.total_bytes for one in self.inputs)

    @property
    def output_bytes(self) -> int:
        """About how many bytes are written: those of the base files, since log files mostly hold changes of their rows.

        A slice without base file counts with its log files.
        """
        return sum(one.base_bytes or one.log_bytes for one in self.inputs)

    def to_json(self) -> JsonObject:
        """The row of the JSON document; the partition is that of the entry around it."""
        return {"output_files": self.output_file_count, "inputs": [one.to_json() for one in self.inputs]}

    @classmethod
    def from_json(cls, row: Mapping[str, Any], *, partition_path: str) -> PlannedGroup:
        """Read what :meth:`to_json` wrote."""
        return cls(
            partition_path=partition_path,
            inputs=tuple(PlannedInput.from_json(one) for one in row["inputs"]),
            output_file_count=row["output_files"],
        )
