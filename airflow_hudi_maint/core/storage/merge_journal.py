"""The journal of swaps: each is written down before it begins, and taken out when it is done.

An entry also is the manifest of its directory while the swap is under way: see :func:`current_names`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from airflow_hudi_maint.core.errors import CorruptTableError
from airflow_hudi_maint.core.model.document import JsonObject, checked_document
from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
from airflow_hudi_maint.core.storage.filesystem import Storage

JOURNAL_FOLDER = f"{MERGE_STATE_FOLDER}/journal"
STAGING_FOLDER = f"{MERGE_STATE_FOLDER}/staging"
TRASH_FOLDER = f"{MERGE_STATE_FOLDER}/trash"

Direction = Literal["forward", "back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapFile:
    """A file on its way: ``name`` in the directory, and ``aside`` the path of its staged or trashed form.

    ``modified_ns`` is that of the file in the directory. ``is_checksum``: a ``.crc`` that goes along with its file.
    """

    name: str
    aside: str
    bytes: int
    modified_ns: int | None = None
    is_checksum: bool = False

    def to_json(self) -> JsonObject:
        """The object of the JSON document."""
        return {
            "name": self.name,
            "aside": self.aside,
            "bytes": self.bytes,
            "modified_ns": self.modified_ns,
            "is_checksum": self.is_checksum,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SwapFile:
        """Read what :meth:`to_json` wrote."""
        return cls(
            name=value["name"],
            aside=value["aside"],
            bytes=value["bytes"],
            modified_ns=value["modified_ns"],
            is_checksum=value["is_checksum"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """One group's exchange: ``output`` is published in ``directory`` and then ``inputs`` go to the trash."""

    KIND: ClassVar[str] = "merge-swap"
    VERSION: ClassVar[int] = 1

    run: str
    number: int
    directory: str
    output: SwapFile
    inputs: tuple[SwapFile, ...]
    direction: Direction = "forward"
    trash_days: int = 0

    @property
    def name(self) -> str:
        """What entries of the journal and manifests are called."""
        return f"{self.run}-{self.number:06}"

    @property
    def journal_path(self) -> str:
        """Where the entry lies while the swap is under way."""
        return f"{JOURNAL_FOLDER}/{self.name}.json"

    @property
    def manifest_path(self) -> str:
        """Where the entry lies afterwards, beside what is in the trash."""
        return f"{trash_folder(self.run)}/{self.number:06}.json"

    def path_of(self, name: str) -> str:
        """The path of a file of the directory below the root."""
        return f"{self.directory}/{name}" if self.directory else name

    def to_bytes(self) -> bytes:
        """The document."""
        document: JsonObject = {
            "kind": self.KIND,
            "version": self.VERSION,
            "run": self.run,
            "number": self.number,
            "directory": self.directory,
            "direction": self.direction,
            "trash_days": self.trash_days,
            "output": self.output.to_json(),
            "inputs": [one.to_json() for one in self.inputs],
        }
        return json.dumps(document).encode("ascii")

    @classmethod
    def read(cls, storage: Storage, path: str) -> Swap:
        """Read an entry or a manifest; raises CorruptTableError that names it, FileNotFoundError."""
        name = storage.join(path)
        try:
            value = json.loads(storage.read_bytes(path))
            document: Mapping[str, Any] = checked_document(value, kind=cls.KIND, version=cls.VERSION, name=name)
            return cls(
                run=document["run"],
                number=document["number"],
                directory=document["directory"],
                direction=document["direction"],
                trash_days=document["trash_days"],
                output=SwapFile.from_json(document["output"]),
                inputs=tuple(SwapFile.from_json(one) for one in document["inputs"]),
            )
        except CorruptTableError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptTableError(
                f"{name} cannot be read ({type(error).__name__}: {error}); it says which files are merged, so look at "
                "it before anything is deleted"
            ) from error


def trash_folder(run: str) -> str:
    """Where a run's inputs lie afterwards, with a manifest for each group."""
    return f"{TRASH_FOLDER}/{run}"


def open_swaps(storage: Storage, *, path: str = "") -> tuple[Swap, ...]:
    """The swaps that began and did not end, below a directory with a state folder of its own."""
    folder = f"{path}/{JOURNAL_FOLDER}" if path else JOURNAL_FOLDER
    found: list[Swap] = []
    for name in sorted(_names(storage, folder)):
        if name.startswith(".") or not name.endswith(".json"):
            continue
        try:
            found.append(Swap.read(storage, f"{folder}/{name}"))
        except FileNotFoundError:  # it ended meanwhile
            continue
    return tuple(found)


def current_names(names: Sequence[str], *, directory: str, swaps: Sequence[Swap]) -> tuple[str, ...]:
    """Which of the names in a listing of ``directory`` make up its rows, each exactly once, while swaps are under way.

    A merged file counts from the moment it is there, and from then on its inputs do not.
    """
    left_out: set[str] = set()
    there = set(names)
    for swap in swaps:
        if swap.directory == directory and swap.output.name in there:
            left_out.update(one.name for one in swap.inputs)
    return tuple(sorted(there - left_out))


def _names(storage: Storage, folder: str) -> tuple[str, ...]:
    try:
        return storage.names(folder)
    except FileNotFoundError:
        return ()
