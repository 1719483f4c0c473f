"""The hook: from a connection of type ``hudi`` to an open table and to an engine."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError
from airflow_hudi_maint.hooks.arguments import as_exact_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow.sdk import Connection

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.engines.cluster import JobExchange
    from airflow_hudi_maint.core.maintenance import MergeWorkspace, Workspace
    from airflow_hudi_maint.hooks.cluster_connection import LivyConnection, SparkConnection
    from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
    from airflow_hudi_maint.hooks.storage_connection import StorageConnection

    class _OfConnection(Protocol):
        """What is read from a connection."""

        @classmethod
        def of(cls, connection: Connection) -> Self: ...

        def secrets(self) -> Iterable[str]: ...

    _Read = TypeVar("_Read", bound=_OfConnection)


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
        from airflow_hudi_maint.hooks.settings import HudiConnectionSettings

        if self.hudi_conn_id is None:
            return HudiConnectionSettings()
        return self._read(HudiConnectionSettings, self.hudi_conn_id)

    @cached_property
    def storage_connection(self) -> StorageConnection | None:
        """The connection that ``storage_conn_id`` names, read once and masked; None when it names none."""
        from airflow_hudi_maint.hooks.storage_connection import StorageConnection

        name = self.settings.storage_conn_id
        return None if name is None else self._read(StorageConnection, name, field="storage_conn_id")

    @cached_property
    def spark_connection(self) -> SparkConnection | None:
        """The connection of type ``spark`` that ``spark_conn_id`` names; None when it names none."""
        from airflow_hudi_maint.hooks.cluster_connection import SparkConnection

        name = self.settings.spark_conn_id
        return None if name is None else self._read(SparkConnection, name, field="spark_conn_id")

    @cached_property
    def livy_connection(self) -> LivyConnection:
        """The connection of type ``livy`` that ``livy_conn_id`` names."""
        from airflow_hudi_maint.hooks.cluster_connection import LivyConnection

        return self._read(LivyConnection, self.settings.livy_conn_id or "", field="livy_conn_id")

    async def aconnect(self) -> None:
        """Read the connections without blocking an event loop; what the hook does afterwards asks Airflow nothing."""
        from airflow_hudi_maint.hooks.cluster_connection import LivyConnection, SparkConnection
        from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
        from airflow_hudi_maint.hooks.storage_connection import StorageConnection

        if self.hudi_conn_id is None:
            return
        self.settings = settings = await self._aread(HudiConnectionSettings, self.hudi_conn_id)
        if name := settings.storage_conn_id:
            self.storage_connection = await self._aread(StorageConnection, name, field="storage_conn_id")
        if name := settings.spark_conn_id:
            self.spark_connection = await self._aread(SparkConnection, name, field="spark_conn_id")
        if name := settings.livy_conn_id:
            self.livy_connection = await self._aread(LivyConnection, name, field="livy_conn_id")

    @property
    def storage_options(self) -> Mapping[str, object]:
        """What fsspec is given: options of the storage's connection, and over them those of the field itself."""
        from airflow_hudi_maint.hooks.storage_connection import merged

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
        return self._engine(storage_options=self.storage_options, exchange=self._exchange)

    def make_engine_for_files(self, workspace: MergeWorkspace) -> Engine:
        """Make the engine for a job on a directory of plain files, which is opened with options of its own."""
        from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
        from airflow_hudi_maint.core.storage.job_exchange import StorageExchange

        exchange = StorageExchange(workspace.storage, f"{MERGE_STATE_FOLDER}/jobs")
        return self._engine(storage_options=workspace.storage_options, exchange=lambda: exchange)

    def _engine(self, *, storage_options: Mapping[str, object], exchange: Callable[[], JobExchange]) -> Engine:
        from airflow_hudi_maint.hooks import engines

        settings, options = self.settings, storage_options
        if settings.engine == "spark_submit":
            return engines.spark_submit_engine(
                settings, self.spark_connection, storage_options=options, exchange=exchange
            )
        if settings.engine == "livy":
            return engines.livy_engine(settings, self.livy_connection, storage_options=options, exchange=exchange)
        return engines.local_engine(settings, storage_options=options)

    def _exchange(self) -> JobExchange:
        """Open the folder of the table in which a job on a cluster and its caller meet."""
        from airflow_hudi_maint.core.storage.job_exchange import StorageExchange

        return StorageExchange.open(self.base_path, storage_options=self.storage_options or None)

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

    def _read(self, kind: type[_Read], name: str, *, field: str | None = None) -> _Read:
        """Read a connection, and have its secrets masked; ``field`` is the setting that names it."""
        try:
            read = kind.of(self.get_connection(name))
        except AirflowNotFoundException:
            raise self._missing(name, field=field) from None
        for secret in read.secrets():
            mask_secret(secret)
        return read

    async def _aread(self, kind: type[_Read], name: str, *, field: str | None = None) -> _Read:
        """The same, without blocking an event loop."""
        try:
            read = kind.of(await self.aget_connection(name))
        except AirflowNotFoundException:
            raise self._missing(name, field=field) from None
        for secret in read.secrets():
            await amask_secret(secret)
        return read

    def _missing(self, name: str, *, field: str | None) -> InvalidSettingError:
        if field is None:
            return InvalidSettingError(
                f"There is no connection {name!r}: make one of type 'hudi', "
                "or give hudi_conn_id=None and a base_path to work without one"
            )
        return InvalidSettingError(
            f"There is no connection {name!r}, which {field} of connection {self.hudi_conn_id!r} names: "
            f"make it, or correct {field}"
        )

    def _where_to_give_one(self) -> str:
        if self.hudi_conn_id is None:
            return "give base_path, since there is no connection to take it from"
        return f"give base_path, or set Base path (host) in connection {self.hudi_conn_id!r}"
