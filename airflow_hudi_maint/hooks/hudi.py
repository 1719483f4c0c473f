"""The hook: from a connection of type ``hudi`` to an open table and to an engine."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from airflow.sdk.log import amask_secret, mask_secret

from airflow_hudi_maint.core.errors import HudiMaintError, InvalidSettingError
from airflow_hudi_maint.core.model.secrets import secrets_in
from airflow_hudi_maint.hooks import engines
from airflow_hudi_maint.hooks.arguments import as_exact_text
from airflow_hudi_maint.hooks.cluster_connection import LivyConnection, SparkConnection
from airflow_hudi_maint.hooks.settings import HudiConnectionSettings
from airflow_hudi_maint.hooks.storage_connection import StorageConnection, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.sdk import Connection

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.engines.cluster import JobExchange
    from airflow_hudi_maint.core.maintenance import MergeWorkspace, Workspace


_ClusterKind = type[SparkConnection] | type[LivyConnection]


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
        await self._aconnect_storage(settings)
        await self._aconnect_cluster(settings)

    async def _aconnect_storage(self, settings: HudiConnectionSettings) -> None:
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

    async def _aconnect_cluster(self, settings: HudiConnectionSettings) -> None:
        kinds: tuple[tuple[str, str | None, _ClusterKind], ...] = (
            ("spark", settings.spark_conn_id, SparkConnection),
            ("livy", settings.livy_conn_id, LivyConnection),
        )
        for kind, name, cls in kinds:
            if name is None:
                continue
            try:
                connection = cls.of(await self.aget_connection(name))
            except AirflowNotFoundException:
                raise self._no_cluster_connection(name, of=f"{kind}_conn_id") from None
            headers = connection.headers if isinstance(connection, LivyConnection) else {}
            for secret in filter(None, (connection.password, *secrets_in(headers))):
                await amask_secret(secret)
            self.__dict__[f"{kind}_connection"] = connection

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

    @cached_property
    def spark_connection(self) -> SparkConnection | None:
        """The connection of type ``spark`` that ``spark_conn_id`` names; None when it names none."""
        name = self.settings.spark_conn_id
        return None if name is None else self._spark_of(self._cluster_connection(name, of="spark_conn_id"))

    @cached_property
    def livy_connection(self) -> LivyConnection:
        """The connection of type ``livy`` that ``livy_conn_id`` names."""
        name = self.settings.livy_conn_id or ""
        connection = LivyConnection.of(self._cluster_connection(name, of="livy_conn_id"))
        for secret in filter(None, (connection.password, *secrets_in(connection.headers))):
            mask_secret(secret)
        return connection

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
        return self._engine(storage_options=self.storage_options, exchange=self._exchange)

    def make_engine_for_files(self, workspace: MergeWorkspace) -> Engine:
        """Make the engine for a job on a directory of plain files, which is opened with options of its own."""
        from airflow_hudi_maint.core.model.merge_plan import MERGE_STATE_FOLDER
        from airflow_hudi_maint.core.storage.job_exchange import StorageExchange

        exchange = StorageExchange(workspace.storage, f"{MERGE_STATE_FOLDER}/jobs")
        return self._engine(storage_options=workspace.storage_options, exchange=lambda: exchange)

    def _engine(self, *, storage_options: Mapping[str, object], exchange: Callable[[], JobExchange]) -> Engine:
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

    def _settings_of(self, connection: Connection) -> HudiConnectionSettings:
        settings = HudiConnectionSettings.from_connection(connection)
        for secret in settings.secrets():
            mask_secret(secret)
        return settings

    def _spark_of(self, connection: Connection) -> SparkConnection:
        spark = SparkConnection.of(connection)
        if spark.password:
            mask_secret(spark.password)
        return spark

    def _cluster_connection(self, name: str, *, of: str) -> Connection:
        try:
            return self.get_connection(name)
        except AirflowNotFoundException:
            raise self._no_cluster_connection(name, of=of) from None

    def _no_cluster_connection(self, name: str, *, of: str) -> InvalidSettingError:
        return InvalidSettingError(
            f"There is no connection {name!r}, which {of} of connection {self.hudi_conn_id!r} names for the cluster: "
            f"make it, or correct {of}"
        )

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
