"""A trigger that waits in the triggerer until there are too many small files."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.plain_files import aplain_storage_options
from airflow_hudi_maint.hooks.small_file_question import SmallFilesQuestion
from airflow_hudi_maint.triggers.timeline import LookTrigger

if TYPE_CHECKING:
    from airflow_hudi_maint.hooks.hudi import HudiHook


class SmallFilesTrigger(LookTrigger):
    """Wait until a Hudi table, or a directory of plain files, has too many small files.

    :param question: What :class:`~airflow_hudi_maint.hooks.small_file_question.SmallFilesQuestion` says of itself.
    :param storage_conn_id: Connection with the credentials of the directory's storage, read by the triggerer.
    :param storage_options: Options for fsspec that hold no secret.
    """

    def __init__(
        self,
        *,
        question: dict[str, Any],
        storage_conn_id: str | None = None,
        storage_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.question = question
        self.storage_conn_id = storage_conn_id
        self.storage_options = storage_options or {}

    async def look(self, hook: HudiHook) -> dict[str, Any] | None:
        """Count once."""
        question = SmallFilesQuestion(**self.question)
        options: dict[str, object] = {}
        if question.directory:
            options = await aplain_storage_options(
                question.directory, storage_conn_id=self.storage_conn_id, storage_options=self.storage_options
            )
        else:
            await hook.aconnect()
        return await asyncio.to_thread(question.answer, hook=hook, storage_options=options, say=self.log.info)

    def _question(self) -> dict[str, Any]:
        return {
            "question": self.question,
            "storage_conn_id": self.storage_conn_id,
            "storage_options": self.storage_options,
        }
