"""The hook: from a connection of type ``hudi`` to an open table and to an engine."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks.arguments import as_exact_text
from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
from airflow_hudi_maint.hooks.storage_connection import StorageConnection, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.sdk import Connection

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.maintenance import Workspace


class HudiHook(BaseHook):
    """Open a Hudi table and the engine that maintains it.

    Nothing is read before a method needs it: neither the connection nor the table.

    :param hudi_conn_id: Connection of type ``hudi``; None for no connection, with every setting at its default.
    :param base_path: Base path of the table as fsspec reads it; None for the connection's.
    """

    conn_name_attr = "hudi_conn_id"
    default_conn_name = "hudi_default"
    conn_type = "hudi"
    hook_name = "Apache Hudi table"

    def __init__(
        self, hudi_conn_id: str | None = default_conn_name, *, base_path: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.hudi_conn_id = as_exact_text("hudi_conn_id", hudi_conn_id)
        self._given_base_path = as_exact_text("base_path", base_path)

    @cached_property
    def settings(self) -> HudiConnectionSettings:
        """What the connection says; read once. Its credentials are masked in logs from then on."""
        if self.hudi_conn_id is None:
            return HudiConnectionSettings()
        try:
            connection = self.get_connection(self.hudi_conn_id)
        except AirflowNotFoundException:
            raise self._no_connection() from None
        return self._settings_of(connection)

    async def aconnect(self) -> None:
        """Read the connection without blocking an event loop; what the hook does afterwards asks Airflow nothing."""
        if self.hudi_conn_id is None:
            return
        try:
            connection = await self.aget_connection(self.hudi_conn_id)
        except AirflowNotFoundException:
            raise self._no_connection() from None
        settings = HudiConnectionSettings.from_connection(connection)
        for secret in settings.secrets():
            await amask_secret(secret)
        self.__dict__["settings"] = settings
        if settings.storage_conn_id is None:
            return
        try:
            connection = await self.aget_connection(settings.storage_conn_id)
        except AirflowNotFoundException:
            raise self._no_storage_connection() from None
        storage = StorageConnection.of(connection)
        for secret in secrets_in(storage.options):
            await amask_secret(secret)
        self.__dict__["storage_connection"] = storage

    @cached_property
    def storage_connection(self) -> StorageConnection | None:
        """The connection that ``storage_conn_id`` names, read once and masked; None when it names none."""
        if self.settings.storage_conn_id is None:
            return None
        try:
            connection = self.get_connection(self.settings.storage_conn_id)
        except AirflowNotFoundException:
            raise self._no_storage_connection() from None
        storage = StorageConnection.of(connection)
        for secret in secrets_in(storage.options):
            mask_secret(secret)
        return storage

    @property
    def storage_options(self) -> Mapping[str, object]:
        """What fsspec is given: options of the storage's connection, and over them those of the field itself."""
        storage = self.storage_connection
        if storage is None:
            return self.settings.storage_options
        storage.check_serves(self.base_path, self.settings.documents_location)
        return merged(self.settings.storage_options, over=storage.options)

    @property
    def base_path(self) -> str:
        """The table's base path: the one given, else the connection's. Raises InvalidSettingError without either."""
        path = self._given_base_path or self.settings.base_path
        if path is None:
            raise InvalidSettingError(f"No base path: {self._where_to_give_one()}")
        return path

    def workspace(
        self, *, engine: Callable[[], Engine] | None = None, log: Callable[[str], None] | None = None
    ) -> Workspace:
        """Open the table with its documents.

        :param engine: Called when a job has to run; None for :meth:`make_engine`.
        :param log: Gets progress in sentences; None for this hook's log.
        """
        from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
        from airflow_hudi_maint.core.maintenance import open_workspace
        from airflow_hudi_maint.core.storage.filesystem import DEFAULT_CONCURRENCY

        settings = self.settings
        concurrency = settings.storage_concurrency
        return open_workspace(
            self.base_path,
            storage_options=self.storage_options or None,
            storage_concurrency=DEFAULT_CONCURRENCY if concurrency is None else concurrency,
            documents_location=settings.documents_location,
            timeline_zone=settings.timeline_zone,
            engine=engine or self.make_engine,
            bundle=settings.bundle or DEFAULT_BUNDLE,
            write_options=settings.write_options or None,
            log=log or self.log.info,
        )

    def make_engine(self) -> Engine:
        """Make the engine that the connection names; nothing is started yet."""
        from airflow_hudi_maint.core.engines.local import LocalSparkEngine

        settings = self.settings
        given: dict[str, Any] = {
            "python": settings.python,
            "bundle": settings.bundle,
            "spark_conf": settings.spark_conf or None,
            "java_home": settings.java_home,
            "driver_memory": settings.driver_memory,
            "master": settings.master,
            "time_zone": settings.timeline_zone,
            "cache_dir": Path(settings.cache_dir) if settings.cache_dir else None,
            "repositories": settings.repositories or None,
            "work_dir": Path(settings.work_dir) if settings.work_dir else None,
        }
        return LocalSparkEngine(**{name: value for name, value in given.items() if value is not None})

    def test_connection(self) -> tuple[bool, str]:
        """Open the table and read its timeline; no engine is started."""
        try:
            table = self.workspace().table
            timeline = table.timeline()
        except (HudiMaintError, OSError) as error:
            return False, f"{type(error).__name__}: {error}"
        config = table.config
        last = timeline.last_completed_time if timeline.completed else "none"
        return True, (
            f"{config.name}: {config.table_type}, table version {config.table_version}, "
            f"{len(timeline.completed)} completed instants, {len(timeline.pending)} pending, last {last}"
        )

    def _settings_of(self, connection: Connection) -> HudiConnectionSettings:
        settings = HudiConnectionSettings.from_connection(connection)
        for secret in settings.secrets():
            mask_secret(secret)
        return settings

    def _where_to_give_one(self) -> str:
        if self.hudi_conn_id is None:
            return "give base_path, since there is no connection to take it from"
        return f"give base_path, or set Base path (host) in connection {self.hudi_conn_id!r}"

    def _no_storage_connection(self) -> InvalidSettingError:
        return InvalidSettingError(
            f"There is no connection {self.settings.storage_conn_id!r}, which storage_conn_id of connection "
            f"{self.hudi_conn_id!r} names for the storage: make it, or correct storage_conn_id"
        )

    def _no_connection(self) -> InvalidSettingError:
        return InvalidSettingError(
            f"There is no connection {self.hudi_conn_id!r}: make one of type 'hudi', "
            "or give hudi_conn_id=None and a base_path to work without one"
        )
