"""Emit what was found about a table as Airflow metrics: StatsD, Datadog or OpenTelemetry, as Airflow is configured."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_hudi_maint.core.model.health import TableHealth

PREFIX = "hudi_maint.table_health"
"""How the names begin, after the prefix that Airflow itself is configured with."""

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


def emit_health(health: TableHealth, *, tags: Mapping[str, str]) -> dict[str, float]:
    """Set a gauge for each signal that has a value, and one for the worst severity; return what was set, by name.

    The worst severity counts 0 for ok, 1 for unknown, 2 for warning and 3 for critical. A gauge carries ``tags`` and
    the tag ``table``. Plain StatsD has no tags, so that the gauges of several tables would fall into one: unless
    ``[metrics] legacy_names_on`` is off, each gauge is also set under a name that has the table in it, as Airflow does
    with names of its own. Without a metrics backend nothing is sent.
    """
    from airflow.sdk.configuration import conf
    from airflow.sdk.observability import stats

    table = _NOT_IN_A_NAME.sub("_", health.table_name)
    prefixes = [PREFIX]
    if conf.getboolean("metrics", "legacy_names_on", fallback=True):
        prefixes.append(f"{PREFIX}.{table}")
    values: dict[str, float] = {one.name: one.value for one in health.signals if one.value is not None}
    values["severity"] = health.severity.rank
    labels = {"table": health.table_name, **tags}
    gauges = {f"{prefix}.{name}": value for prefix in prefixes for name, value in values.items()}
    for name, value in gauges.items():
        stats.gauge(name, value, tags=labels)
    return gauges
