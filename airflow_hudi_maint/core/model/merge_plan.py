"""Plans to merge the small files of a plain directory: what is merged into what, and why all else is left alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.document import Json, JsonObject, checked_document
from airflow_hudi_maint.core.model.merge_settings import Codec, FileFormat, FileKind, MergeSettings

MERGE_STATE_FOLDER = ".airflow_hudi_maint"
"""Everything of ours below a plain directory: its first character hides it from Spark, Hive, Trino and Arrow."""


class InputFile(NamedTuple):
    """One file as it was listed; a tuple because a plan may hold a hundred thousand.

    ``modified_ns`` counts nanoseconds since 1970 in UTC; None where the storage does not tell. ``has_checksum``: Hadoop
    keeps a ``.<name>.crc`` beside it.
    """

    name: str
    bytes: int
    modified_ns: int | None
    has_checksum: bool = False


class LeftAlone(NamedTuple):
    """Files of one directory that are not merged for one reason: how many, their bytes, and the first few names."""

    reason: str
    files: int
    bytes: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeGroup:
    """Neighbours by name of one kind in one directory that become one file.

    ``detected`` says what was found in the files rather than given (encoding, header, delimiter of CSV).
    """

    directory: str
    kind: FileKind
    inputs: tuple[InputFile, ...]
    output_name: str
    detected: Mapping[str, str] = field(default_factory=dict)

    @property
    def input_bytes(self) -> int:
        """The bytes that are read."""
        return sum([one[1] for one in self.inputs])  # a list: this is summed over all files several times

    @property
    def output_path(self) -> str:
        """The path of the merged file below the root."""
        return self.path_of(self.output_name)

    def path_of(self, name: str) -> str:
        """The path of a file of this directory below the root."""
        return f"{self.directory}/{name}" if self.directory else name

    def to_json(self) -> JsonObject:
        """The object of the JSON document; a file is a row of name, bytes, time of modification and checksum."""
        return {**self._head(), "inputs": [list(one) for one in self.inputs]}

    def to_line(self) -> str:
        """The same as text."""
        return json.dumps({**self._head(), "inputs": self.inputs}, ensure_ascii=False)

    def _head(self) -> JsonObject:
        return {
            "directory": self.directory,
            "format": str(self.kind.format),
            "codec": str(self.kind.codec),
            "extension": self.kind.extension,
            "output": self.output_name,
            "input_bytes": self.input_bytes,
            "detected": dict(self.detected),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> MergeGroup:
        """Read what :meth:`to_json` wrote."""
        kind = FileKind(format=FileFormat(value["format"]), codec=Codec(value["codec"]), extension=value["extension"])
        return cls(
            directory=value["directory"],
            kind=kind,
            inputs=tuple(InputFile(*row) for row in value["inputs"]),
            output_name=value["output"],
            detected=value["detected"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDirectory:
    """One directory: its groups, and what is left alone. ``reason`` says why nothing of it is merged, or is empty.

    ``is_untidy``: an earlier run on this very directory died, or left trash that is past its days.
    """

    path: str
    groups: tuple[MergeGroup, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()
    reason: str = ""
    is_untidy: bool = False

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {**self.head(), "groups": [group.to_json() for group in self.groups]}

    def head(self) -> JsonObject:
        """The same without the groups."""
        return {
            "directory": self.path,
            "reason": self.reason,
            "is_untidy": self.is_untidy,
            "left_alone": [
                {"reason": one.reason, "files": one.files, "bytes": one.bytes, "examples": list(one.examples)}
                for one in self.left_alone
            ],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> PlannedDirectory:
        """Read what :meth:`to_json` wrote."""
        return cls(
            path=value["directory"],
            reason=value["reason"],
            is_untidy=value.get("is_untidy", False),
            left_alone=tuple(
                LeftAlone(one["reason"], one["files"], one["bytes"], tuple(one["examples"]))
                for one in value["left_alone"]
            ),
            groups=tuple(MergeGroup.from_json(one) for one in value["groups"]),
        )


@dataclass(frozen=True, kw_only=True)
class MergePlan:
    """What would be merged below ``root``, seen at ``planned_at``; every directory that was looked at is in it."""

    KIND: ClassVar[str] = "merge-plan"
    VERSION: ClassVar[int] = 1

    root: str
    planned_at: datetime
    settings: MergeSettings
    directories: tuple[PlannedDirectory, ...]
    warnings: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[MergeGroup, ...]:
        """All groups, in the order of their directories."""
        return tuple(group for directory in self.directories for group in directory.groups)

    def summary(self) -> JsonObject:
        """Counts and bytes."""
        groups = self.groups
        return {
            "directories": len(self.directories),
            "directories_to_merge": sum(1 for one in self.directories if one.groups),
            "groups": len(groups),
            "input_files": sum(len(group.inputs) for group in groups),
            "input_bytes": sum(group.input_bytes for group in groups),
            "output_files": len(groups),
            "left_alone_files": sum(one.files for directory in self.directories for one in directory.left_alone),
        }

    def to_json(self) -> JsonObject:
        """The whole document."""
        return {**self._head(), "directories": [one.to_json() for one in self.directories]}

    def to_lines(self) -> Iterator[str]:
        """The whole document as text, one line for each group: a plan of many files is written and read fast."""
        yield json.dumps(self._head(), indent=2, ensure_ascii=False)[:-2] + ',\n  "directories": ['
        separator = "\n"
        for one in self.directories:
            groups = ",\n      ".join(group.to_line() for group in one.groups)
            head = json.dumps(one.head(), ensure_ascii=False)[:-1]
            yield f'{separator}    {head}, "groups": [' + (f"\n      {groups}]}}" if groups else "]}")
            separator = ",\n"
        yield "\n  ]\n}\n"

    def _head(self) -> dict[str, Json]:
        return {
            "kind": self.KIND,
            "version": self.VERSION,
            "root": self.root,
            "planned_at": self.planned_at.isoformat(),
            "settings": self.settings.to_json(),
            "summary": self.summary(),
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_json(cls, value: object, *, name: str) -> MergePlan:
        """Read a document; raises CorruptTableError that names the file."""
        document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
        try:
            return cls(
                root=document["root"],
                planned_at=datetime.fromisoformat(document["planned_at"]),
                settings=MergeSettings.from_json(document["settings"]),
                directories=tuple(PlannedDirectory.from_json(row) for row in document["directories"]),
                warnings=tuple(document["warnings"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            msg = f"{name} is a merge plan that cannot be read ({type(error).__name__}: {error}); plan again"
            raise CorruptTableError(msg) from error
