"""Wait until there are too many small files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks.arguments import as_exact_text, as_object, as_optional_float, as_optional_int
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.plain_files import plain_storage_options
from airflow_hudi_maint.hooks.small_file_question import SmallFilesQuestion
from airflow_hudi_maint.sensors.base import LookSensor
from airflow_hudi_maint.triggers.small_files import SmallFilesTrigger

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class SmallFilesSensor(LookSensor):
    """Wait until a Hudi table, or a directory of plain files, has too many small files.

    Every threshold that is given must be met. Only listings are read. Put it before HudiCompactSmallFilesOperator or
    MergeSmallFilesOperator, so that they run when there is something to gain.

    Returns ``{"root", "directories", "files", "small_files", "bytes", "small_bytes", "ratio"}``.

    .. seealso:: ``docs/merging.md``, ``docs/small-files.md``

    :param directory: Directory of plain files; None for the Hudi table of ``hudi_conn_id`` and ``base_path``.
        (templated)
    :param storage_conn_id: Connection with the credentials of the directory's storage. (templated)
    :param storage_options: Given to fsspec for the directory, over those of the connection. With ``deferrable`` they
        must hold no secret: they would lie in the database. (templated)
    :param small_file_bytes: Files below this size are small; None for 64 MiB in a directory and 300 MiB in a table.
        (templated)
    :param min_small_files: How many small files there must be. (templated)
    :param min_ratio: What share of all files must be small, from 0 to 1. (templated)
    :param min_small_bytes: How many bytes small files must hold together. (templated)
    """

    template_fields: Sequence[str] = (
        *LookSensor.template_fields, "directory", "storage_conn_id", "storage_options", "small_file_bytes",
        "min_small_files", "min_ratio", "min_small_bytes",
    )  # fmt: skip

    def __init__(
        self,
        *,
        directory: str | None = None,
        storage_conn_id: str | None = None,
        storage_options: Mapping[str, Any] | str | None = None,
        small_file_bytes: int | str | None = None,
        min_small_files: int | str | None = None,
        min_ratio: float | str | None = None,
        min_small_bytes: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.directory = directory
        self.storage_conn_id = storage_conn_id
        self.storage_options = storage_options
        self.small_file_bytes = small_file_bytes
        self.min_small_files = min_small_files
        self.min_ratio = min_ratio
        self.min_small_bytes = min_small_bytes

    def look(self) -> dict[str, Any] | None:
        """Count once."""
        question = self._question()
        options: Mapping[str, object] = {}
        if question.directory:
            options = plain_storage_options(
                question.directory, storage_conn_id=self.storage_conn_id, storage_options=self.storage_options
            )
        hook = HudiHook(self.hudi_conn_id, base_path=self.base_path)
        return question.answer(hook=hook, storage_options=options, say=self.log.info)

    def make_trigger(self) -> SmallFilesTrigger:
        """Make the trigger that looks on in the triggerer."""
        options = dict(as_object("storage_options", self.storage_options))
        if any(secrets_in(options)):
            raise InvalidSettingError(
                "storage_options hold a secret, which a deferred sensor would leave in the database: put it in a "
                "connection and name that in storage_conn_id, or set deferrable=False"
            )
        return SmallFilesTrigger(
            **self.look_arguments(),
            question=self._question().to_json(),
            storage_conn_id=as_exact_text("storage_conn_id", self.storage_conn_id),
            storage_options=options,
        )

    def _question(self) -> SmallFilesQuestion:
        directory = as_exact_text("directory", self.directory)
        if directory and as_exact_text("base_path", self.base_path):
            raise InvalidSettingError("directory is one of plain files, and base_path a Hudi table: give one of them")
        return SmallFilesQuestion(
            directory=directory,
            small_file_bytes=as_optional_int("small_file_bytes", self.small_file_bytes),
            min_small_files=as_optional_int("min_small_files", self.min_small_files),
            min_ratio=as_optional_float("min_ratio", self.min_ratio),
            min_small_bytes=as_optional_int("min_small_bytes", self.min_small_bytes),
        )
