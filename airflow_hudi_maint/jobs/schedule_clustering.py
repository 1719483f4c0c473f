"""Write a clustering plan (an instant in state requested) for named partitions of a Hudi table.

Arguments: ``partitions`` (relative partition paths; empty only for a table that is not partitioned), ``sort_columns``,
``layout`` (linear, zorder, hilbert), ``options`` (Hudi options of this plan, such as the most groups and the sizes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, call, comma_separated, main, session_options
else:
    from session import call, comma_separated, main, session_options

KIND = "schedule_clustering"
LAYOUTS = ("linear", "zorder", "hilbert")


def schedule_clustering(spark: SparkSession, request: Request) -> list[Row]:
    """Plan, and return the rows of the call: none on table versions 8 and 9, even when a plan was written."""
    arguments = call_arguments(request)
    with session_options(spark, options=plan_options(request)):
        return call(spark, procedure="run_clustering", arguments=arguments)


def call_arguments(request: Request) -> dict[str, str]:
    """Return the arguments of the procedure, in words of SQL."""
    arguments = {"path": request.base_path, "op": "schedule"}
    partitions = request.names("partitions")
    if partitions:
        arguments["selected_partitions"] = comma_separated(partitions, what="Partition")
    columns = request.names("sort_columns")
    if columns:
        layout = request.arguments.get("layout") or "linear"
        if layout not in LAYOUTS:
            raise ValueError(f"Layout {layout!r} is not one of {', '.join(LAYOUTS)}")
        arguments["order"] = comma_separated(columns, what="Sort column")
        arguments["order_strategy"] = layout
    return arguments


def plan_options(request: Request) -> dict[str, str]:
    """Return the session settings of the plan: the table's, then the plan's own."""
    options = {
        # Since 1.0 a plan looks only at partitions written since the last clustering; the caller has already chosen.
        "hoodie.table.services.incremental.enabled": "false",
        **request.write_options,
    }
    given = request.arguments.get("options") or {}
    options.update({str(name): str(value) for name, value in given.items()})
    return options


if __name__ == "__main__":
    main(KIND, job=schedule_clustering)
