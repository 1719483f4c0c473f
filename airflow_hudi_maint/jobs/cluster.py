"""Schedule a clustering of named partitions of a Hudi table and execute it, in one Spark application.

Arguments: those of the job schedule_clustering, and ``execute_options`` (Hudi options of the execution: what Hudi does
not keep in a plan, such as its layout). A plan that appears meanwhile and holds another partition is nobody's but its
maker's: it is left alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.pending_plans import pending_clusterings
    from airflow_hudi_maint.jobs.schedule_clustering import schedule_clustering
    from airflow_hudi_maint.jobs.session import Request, Row, call, main, session_options
else:
    from pending_plans import pending_clusterings
    from schedule_clustering import schedule_clustering
    from session import call, main, session_options

KIND = "cluster"


def cluster(spark: SparkSession, request: Request) -> list[Row]:
    """Plan, find the plans that came of it by comparing the pending ones, and execute exactly these.

    The rows are those of the executions: none when Hudi found nothing to do.
    """
    before = pending_clusterings(spark, base_path=request.base_path)
    schedule_clustering(spark, request)
    after = pending_clusterings(spark, base_path=request.base_path)
    chosen = set(request.names("partitions")) or {""}
    new = {instant: held for instant, held in after.items() if instant not in before}
    ours = sorted(instant for instant, held in new.items() if held and held <= chosen)
    for instant in sorted(set(new) - set(ours)):
        print(f"Clustering plan {instant} appeared meanwhile and holds other partitions: it is left alone", flush=True)
    given = request.arguments.get("execute_options") or {}
    options = {**request.write_options, **{str(name): str(value) for name, value in given.items()}}
    found: list[Row] = []
    for instant in ours:
        print(f"Scheduled {instant}, executing it", flush=True)
        with session_options(spark, options=options):
            arguments = {"path": request.base_path, "op": "execute", "instants": instant}
            found += call(spark, procedure="run_clustering", arguments=arguments)
    return found


if __name__ == "__main__":
    main(KIND, job=cluster)
