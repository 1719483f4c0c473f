"""Metrics reach a StatsD server and an OpenTelemetry reader, as Airflow is configured."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from airflow.sdk.observability import stats

from airflow_hudi_maint.core.model.health import HealthSignal, Severity, TableHealth, Unit
from airflow_hudi_maint.hooks.metrics import emit_health


def health(table_name: str = "trips") -> TableHealth:
    shared: dict[str, Any] = {"unit": Unit.COUNT, "found": "x."}
    return TableHealth(
        base_path="/lake/trips",
        table_name=table_name,
        table_version=9,
        table_type="COPY_ON_WRITE",
        as_of_instant="20261130000000000",
        checked_at="2026-11-30T00:00:00.000+00:00",
        signals=(
            HealthSignal(name="archive_files", value=7, severity=Severity.WARNING, **shared),
            HealthSignal(name="small_file_ratio", value=0.25, severity=Severity.OK, **shared),
            HealthSignal(name="last_clean_seconds", value=None, severity=Severity.UNKNOWN, **shared),
        ),
    )


class StatsdClient:
    """A client of the StatsD protocol with the methods that Airflow calls, for it brings none along."""

    def __init__(self, host: str, port: int, prefix: str, _: object) -> None:
        self.address, self.prefix = (host, port), prefix
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def gauge(self, stat: str, value: float, *_: object) -> None:
        self.socket.sendto(f"{self.prefix}.{stat}:{value}|g".encode(), self.address)


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as bound:
        bound.bind(("127.0.0.1", 0))
        bound.settimeout(5)
        yield bound


@pytest.fixture
def statsd(server: socket.socket) -> Iterator[Any]:
    """Airflow's own StatsD logger, towards the server."""
    from airflow.sdk._shared.observability.metrics.statsd_logger import get_statsd_logger

    clients: list[StatsdClient] = []

    def connect(**options: Any) -> None:
        host, port = server.getsockname()
        logger: Any = get_statsd_logger(
            stats_class=StatsdClient,  # type: ignore[arg-type]
            host=host,
            port=port,
            prefix="airflow",
            **options,
        )
        clients.append(logger.statsd)
        stats.initialize(factory=lambda: logger, export_legacy_names=True)

    yield connect
    stats.initialize(factory=_no_backend, export_legacy_names=True)
    for client in clients:
        client.socket.close()


def _no_backend() -> Any:
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    return NoStatsLogger()


def received(server: socket.socket, count: int) -> set[str]:
    return {server.recv(1024).decode() for _ in range(count)}


def test_a_statsd_server_receives_a_gauge_for_each_signal(server: socket.socket, statsd: Any) -> None:
    """Twice: plain StatsD has no tags, so one name has the table in it. What could not be told is not sent."""
    statsd()
    emit_health(health("lake.trips"), tags={"dag_id": "maintain"})
    assert received(server, 6) == {
        "airflow.hudi_maint.table_health.archive_files:7|g",
        "airflow.hudi_maint.table_health.small_file_ratio:0.25|g",
        "airflow.hudi_maint.table_health.severity:2|g",
        "airflow.hudi_maint.table_health.lake_trips.archive_files:7|g",
        "airflow.hudi_maint.table_health.lake_trips.small_file_ratio:0.25|g",
        "airflow.hudi_maint.table_health.lake_trips.severity:2|g",
    }


def test_where_statsd_has_tags_the_table_and_the_task_are_among_them(
    server: socket.socket, statsd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with names without tags switched off each gauge is sent once."""
    monkeypatch.setenv("AIRFLOW__METRICS__LEGACY_NAMES_ON", "False")
    statsd(influxdb_tags_enabled=True, statsd_influxdb_enabled=True)
    emit_health(health(), tags={"dag_id": "maintain", "task_id": "health"})
    tags = "table=trips,dag_id=maintain,task_id=health"
    assert received(server, 3) == {
        f"airflow.hudi_maint.table_health.archive_files,{tags}:7|g",
        f"airflow.hudi_maint.table_health.small_file_ratio,{tags}:0.25|g",
        f"airflow.hudi_maint.table_health.severity,{tags}:2|g",
    }


def test_without_a_backend_nothing_is_sent_and_nothing_fails() -> None:
    """Most installations have none."""
    gauges = emit_health(health(), tags={})
    assert gauges["hudi_maint.table_health.archive_files"] == 7
    assert len(gauges) == 6


def test_opentelemetry_reads_the_gauges_with_their_tags() -> None:
    """By Airflow's own OpenTelemetry logger and a reader in memory."""
    from airflow.sdk._shared.observability.metrics.otel_logger import SafeOtelLogger
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    stats.initialize(factory=lambda: SafeOtelLogger(provider, prefix="airflow"), export_legacy_names=True)
    try:
        emit_health(health(), tags={"dag_id": "maintain"})
        data: Any = reader.get_metrics_data()
    finally:
        stats.initialize(factory=_no_backend, export_legacy_names=True)
        provider.shutdown()
    points = {
        metric.name: (point.value, dict(point.attributes))
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert points["airflow.hudi_maint.table_health.archive_files"] == (7, {"table": "trips", "dag_id": "maintain"})
