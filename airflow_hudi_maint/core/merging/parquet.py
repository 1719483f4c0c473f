"""Merge plain Parquet files into one, by copying column chunks or by encoding again, whichever fits.

Both keep the order of the rows, within a file and across the files in the order given, and the schema element by
element. How a row group is treated is decided for each: see ``parquet_steps``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from airflow_hudi_maint import __version__
from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError, UnreadableFileError, VerificationError
from airflow_hudi_maint.core.merging.parquet_assembly import ParquetAssembly
from airflow_hudi_maint.core.merging.parquet_chunks import NotCopyableError, copy_step
from airflow_hudi_maint.core.merging.parquet_decode import BrokenInputError, Decoder, column_names
from airflow_hudi_maint.core.merging.parquet_encode import Encoder, can_write_bloom_filters, encoder_for
from airflow_hudi_maint.core.merging.parquet_joint import wanted_columns
from airflow_hudi_maint.core.merging.parquet_physical import physical_arrow_schema, physical_leaves, physical_prefix
from airflow_hudi_maint.core.merging.parquet_reencode import encoding_pool
from airflow_hudi_maint.core.merging.parquet_shortcuts import shortcuts_of
from airflow_hudi_maint.core.merging.parquet_steps import Limits, Method, Step, StepPlan, plan_steps
from airflow_hudi_maint.core.merging.parquet_survey import Survey, survey_inputs
from airflow_hudi_maint.core.merging.schemas import UnifiedSchema, unify_schemas
from airflow_hudi_maint.core.merging.thrift_compact import STRUCT, Struct
from airflow_hudi_maint.core.storage.filesystem import Storage

_MEBI = 1024 * 1024
_PIECE_BYTES = 8 * _MEBI
_PROBE_ROWS = 1024
_LEAST_PIECE_ROWS = 256
_BUFFERS_EACH = 3
_WRITTEN_CODECS = ("none", "snappy", "gzip", "brotli", "lz4", "zstd")
_RESERVED_BYTES = 128 * _MEBI
"""Python, pyarrow and what neither gives back."""

OnUnreadable = Literal["fail", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetMergeSettings:
    """How files are merged.

    ``method`` "auto" chooses for each row group; the two others insist. ``row_group_rows`` and ``row_group_bytes`` (of
    values in memory) bound the row groups that are encoded again; one of ``copy_row_group_bytes`` (before compression)
    or more is large enough to be copied. ``codec`` None keeps that of each column, as the first file has it; the level
    of a codec is nowhere in a file, None is pyarrow's own. ``memory_bytes`` bounds the whole process by the number of
    ``workers``, which None leaves to it and to the number of processors.
    """

    method: Method = "auto"
    on_unreadable: OnUnreadable = "fail"
    row_group_rows: int = 1_048_576
    row_group_bytes: int = 64 * _MEBI
    copy_row_group_bytes: int = 8 * _MEBI
    codec: str | None = None
    compression_level: int | None = None
    workers: int | None = None
    memory_bytes: int = 512 * _MEBI

    def __post_init__(self) -> None:
        for name in ("row_group_rows", "row_group_bytes", "copy_row_group_bytes", "memory_bytes"):
            if getattr(self, name) < 1:
                raise InvalidSettingError(f"{name}={getattr(self, name)}; expected 1 or more")
        if self.workers is not None and self.workers < 1:
            raise InvalidSettingError(f"workers={self.workers}; expected 1 or more")
        if self.method not in ("auto", "chunk copy", "re-encode"):
            raise InvalidSettingError(f"method={self.method!r}; expected 'auto', 'chunk copy' or 're-encode'")
        if self.on_unreadable not in ("fail", "skip"):
            raise InvalidSettingError(f"on_unreadable={self.on_unreadable!r}; expected 'fail' or 'skip'")
        if self.codec is not None and self.codec not in _WRITTEN_CODECS:
            raise InvalidSettingError(f"codec={self.codec!r}; expected one of {', '.join(_WRITTEN_CODECS)}")

    @property
    def threads(self) -> int:
        """How many row groups are encoded at a time: each takes its values, its bytes, and as much again in between."""
        if self.workers is not None:
            return self.workers
        room = (self.memory_bytes - _RESERVED_BYTES) // (_BUFFERS_EACH * self.row_group_bytes)
        return max(1, min(os.cpu_count() or 1, room))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedParquet:
    """What became of a merge.

    ``method`` is "chunk copy" where every row group was copied, and ``reason`` says why. ``skipped`` are the inputs
    that were left out; ``notes`` say why, what was promoted, and what did not stay.
    """

    rows: int
    bytes: int
    row_groups: int
    method: Literal["chunk copy", "re-encode"]
    reason: str
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def merge_parquet(
    storage: Storage,
    *,
    inputs: Sequence[str],
    output: str,
    settings: ParquetMergeSettings | None = None,
    log: Callable[[str], None] | None = None,
) -> MergedParquet:
    """Write the rows of ``inputs``, in their order, to ``output``, where nothing may be, and nothing else.

    Paths are relative to the storage. Whatever fails, no output is left. The inputs are not touched.

    Raises UnreadableFileError for a broken input (unless such are skipped) and where all are, SchemaConflictError for
    schemas that no safe promotion joins, FileNotFoundError for an input that is gone, StorageError where storage fails
    or is full, InvalidSettingError for a method that does not fit, VerificationError where rows were lost.
    """
    wanted = settings or ParquetMergeSettings()
    if not inputs:
        raise InvalidSettingError("There are no files to merge into " + storage.join(output))
    broken: dict[str, str] = {}
    cannot_copy: str | None = None
    while True:
        survey = survey_inputs(storage, inputs=inputs, on_unreadable=wanted.on_unreadable, without=tuple(broken))
        survey = replace(survey, skipped=_in_order(inputs, (*survey.skipped, *broken.items())))
        try:
            return _Merge(storage, survey=survey, settings=wanted, cannot_copy=cannot_copy, log=log).run(output)
        except NotCopyableError as error:
            cannot_copy = str(error)
        except BrokenInputError as error:
            if wanted.on_unreadable == "fail":
                raise UnreadableFileError(
                    f"{error}. Nothing was written; take the file away, or set on_unreadable='skip'"
                ) from error
            broken[error.path] = str(error)


def _in_order(inputs: Sequence[str], skipped: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    reasons = dict(skipped)
    return tuple((path, reasons[path]) for path in inputs if path in reasons)


class _Merge:
    """One try."""

    def __init__(
        self,
        storage: Storage,
        *,
        survey: Survey,
        settings: ParquetMergeSettings,
        cannot_copy: str | None,
        log: Callable[[str], None] | None,
    ) -> None:
        if not survey.files:
            first = survey.skipped[0][1]
            raise UnreadableFileError(f"None of {len(survey.skipped)} files can be read; the first: {first}")
        self._storage = storage
        self._survey = survey
        self._settings = settings
        self._cannot_copy = cannot_copy
        self._log = log or (lambda _: None)
        self._schema: UnifiedSchema = unify_schemas([one.named for one in survey.schemas])
        self._leaves = physical_leaves(self._schema.root)

    def run(self, output: str) -> MergedParquet:
        """Plan, write, and check the number of rows."""
        limits = Limits(
            row_group_rows=self._settings.row_group_rows,
            row_group_bytes=self._settings.row_group_bytes,
            copy_row_group_bytes=self._settings.copy_row_group_bytes,
            workers=self._settings.threads,
        )
        plan = self._plan(limits)
        decoder = encoder = None
        if not plan.is_copy:
            decoder, encoder = self._codec_pair()
            plan, decoder = self._plan_by_size(plan, decoder=decoder, limits=limits)
        method: Literal["chunk copy", "re-encode"] = "chunk copy" if plan.is_copy else "re-encode"
        self._log(f"{len(self._survey.files)} files become {output} by {method}: {plan.reason}")
        return self._written(output, plan=plan, decoder=decoder, encoder=encoder, method=method)

    def _plan(self, limits: Limits) -> StepPlan:
        return plan_steps(
            self._survey,
            schema=self._schema,
            limits=limits,
            method=self._settings.method,
            codec=self._settings.codec,
            cannot_copy=self._cannot_copy,
        )

    def _plan_by_size(self, plan: StepPlan, *, decoder: Decoder, limits: Limits) -> tuple[StepPlan, Decoder]:
        """Plan again, by how large the values of some row groups are in memory."""
        refs = [one for step in plan.steps if not step.is_copy for one in step.groups]
        probe = replace(decoder, piece_rows=_PROBE_ROWS)
        sizes = [probe.decoded_row_bytes(refs[place]) for place in {0, len(refs) // 2, len(refs) - 1}]
        ratio = max(1.0, *(size * ref.rows / max(ref.bytes, 1) for size, ref in sizes))
        piece_rows = int(_PIECE_BYTES / max(1.0, *(size for size, _ in sizes)))
        decoder = replace(decoder, piece_rows=min(max(piece_rows, _LEAST_PIECE_ROWS), decoder.piece_rows))
        return self._plan(replace(limits, decoded_ratio=ratio)), decoder

    def _codec_pair(self) -> tuple[Decoder, Encoder]:
        root = self._schema.root
        arrow_schema = physical_arrow_schema(physical_prefix(root, names=range(len(root.children))))
        encoder = encoder_for(
            self._survey,
            schema=self._schema,
            leaves=self._leaves,
            arrow_schema=arrow_schema,
            codec=self._settings.codec,
            compression_level=self._settings.compression_level,
            max_rows=self._settings.row_group_rows,
            max_bytes=self._settings.row_group_bytes * 5 // 4,
        )
        wanted = tuple(
            wanted_columns(known.named.root, names=column_names(places))
            for known, places in zip(self._survey.schemas, self._schema.sources, strict=True)
        )
        decoder = Decoder(
            storage=self._storage,
            survey=self._survey,
            schema=self._schema,
            arrow_schema=arrow_schema,
            wanted=wanted,
        )
        return decoder, encoder

    def _written(
        self,
        output: str,
        *,
        plan: StepPlan,
        decoder: Decoder | None,
        encoder: Encoder | None,
        method: Literal["chunk copy", "re-encode"],
    ) -> MergedParquet:
        key_values, notes = self._survey.key_values.merged(
            rows=self._survey.rows, changed=not all(self._schema.is_same), widened=self._schema.widened
        )
        is_begun = False
        try:
            with self._storage.open_output(output) as file:
                is_begun = True
                assembly = ParquetAssembly(file, leaves=self._leaves)
                if decoder is None or encoder is None:
                    self._copy(plan.steps, assembly)
                else:
                    self._run(plan.steps, assembly, decoder=decoder, encoder=encoder)
                size = self._finish(assembly, plan=plan, key_values=key_values)
        except BaseException:
            if is_begun:
                with suppress(HudiMaintError, FileNotFoundError):  # what went wrong before says more
                    self._storage.delete(output)
            raise
        return MergedParquet(
            rows=assembly.rows,
            bytes=size,
            row_groups=assembly.row_groups,
            method=method,
            reason=plan.reason,
            skipped=tuple(path for path, _ in self._survey.skipped),
            notes=(
                *(f"left out: {reason}" for _, reason in self._survey.skipped),
                *self._schema.changes,
                *notes,
                *self._losses(plan, encoder),
            ),
        )

    def _copy(self, steps: Sequence[Step], assembly: ParquetAssembly) -> None:
        for step in steps:
            copy_step(self._storage, step=step, survey=self._survey, assembly=assembly)

    def _run(self, steps: Sequence[Step], assembly: ParquetAssembly, *, decoder: Decoder, encoder: Encoder) -> None:
        shortcuts = shortcuts_of(steps, decoder=decoder, encoder=encoder)
        workers = self._settings.threads
        with encoding_pool(decoder=decoder, encoder=encoder, shortcuts=shortcuts, workers=workers) as pool:
            for place, step in enumerate(steps):
                pool.begin(steps, at=place)
                if step.is_copy:
                    self._copy([step], assembly)
                    continue
                for encoded in pool.results(place):
                    assembly.append(encoded.source, encoded.groups, is_reencoded=True)
                    del encoded

    def _finish(self, assembly: ParquetAssembly, *, plan: StepPlan, key_values: dict[bytes, bytes]) -> int:
        if assembly.rows != self._survey.rows:
            raise VerificationError(
                f"{assembly.rows} rows were written where the inputs have {self._survey.rows}; nothing was kept. "
                "Please report it with the files"
            )
        encodes = [step for step in plan.steps if not step.is_copy]
        own_orders = self._survey.schemas[0].column_orders
        usual: tuple[int, list[Struct]] = (STRUCT, [{1: (STRUCT, {})} for _ in self._leaves])
        # Where copied row groups order their values by another rule, readers are not told any.
        orders = (
            own_orders if not encodes else usual if len(encodes) == len(plan.steps) or own_orders == usual else None
        )
        return assembly.finish(
            root=self._schema.root,
            version=max(one.version for one in self._survey.schemas),
            key_values=key_values,
            created_by=self._created_by(is_encoded=len(encodes) == len(plan.steps) > 0),
            column_orders=orders,
        )

    def _created_by(self, *, is_encoded: bool) -> bytes:
        """The writer of the bytes, since readers know the faults of some by this name."""
        if is_encoded:
            import pyarrow as pa

            return f"parquet-cpp-arrow version {pa.__version__}".encode()
        if len(self._survey.created_by) == 1 and self._survey.created_by[0]:
            return self._survey.created_by[0]
        return f"airflow-hudi-maint version {__version__}".encode()

    def _losses(self, plan: StepPlan, encoder: Encoder | None) -> tuple[str, ...]:
        """What a re-encode does not carry over."""
        losses = []
        if encoder is not None and encoder.bloom_names() and not can_write_bloom_filters():
            losses.append("Bloom filters were dropped: this release of pyarrow does not write them")
        if not plan.is_copy and any(one.is_sorted for one in self._survey.schemas):
            losses.append("row groups no longer say how their rows are sorted: joined ones need not be")
        return tuple(losses)
