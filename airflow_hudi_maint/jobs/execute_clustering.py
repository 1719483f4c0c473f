"""Execute pending clustering plans of a Hudi table, each named by its instant.

Arguments: ``instants``, ``options`` (Hudi options of this run) and ``options_of`` (Hudi options of each instant: what
Hudi does not keep in a plan, such as its layout). A plan whose earlier execution died is rolled back to requested by
Hudi itself and executed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, call, main, session_options
else:
    from session import call, main, session_options

KIND = "execute_clustering"


def execute_clustering(spark: SparkSession, request: Request) -> list[Row]:
    """Execute these plans and no other, one after the other, and return the procedure's rows."""
    found: list[Row] = []
    for instant in checked_instants(request):
        with session_options(spark, options=options_of(request, instant=instant)):
            found += call(spark, procedure="run_clustering", arguments=call_arguments(request, instant=instant))
    return found


def checked_instants(request: Request) -> list[str]:
    """Return the instants; an empty list is refused, since Hudi would execute every pending plan."""
    instants = request.names("instants")
    if not instants:
        raise ValueError("No instant is named; Hudi would execute every pending plan")
    for instant in instants:
        if not instant.isdigit():
            raise ValueError(f"Instant {instant!r} is not made of digits")
    return instants


def call_arguments(request: Request, *, instant: str) -> dict[str, str]:
    """Return the arguments of the procedure."""
    return {"path": request.base_path, "op": "execute", "instants": instant}


def options_of(request: Request, *, instant: str) -> dict[str, str]:
    """Return the session settings for one plan: the table's, the run's, and over them the plan's own."""
    run = request.arguments.get("options") or {}
    own = (request.arguments.get("options_of") or {}).get(instant) or {}
    return {**request.write_options, **{str(name): str(value) for name, value in {**run, **own}.items()}}


if __name__ == "__main__":
    main(KIND, job=execute_clustering)
