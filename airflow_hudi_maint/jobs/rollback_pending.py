"""Roll back pending clusterings and compactions of a Hudi table, requested or inflight, and their plans with them.

Arguments: ``instants``. Hudi's procedure for this (``run_rollback_inflight_tableservice``) knows inflight ones only,
wants a table of the catalog, and is not there before 1.0. What it calls is the table's own rollback, and so does this:
the same that a writer does which gives up a plan for its update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.leftovers import requested_time
    from airflow_hudi_maint.jobs.session import Request, Row, main
    from airflow_hudi_maint.jobs.write_client import write_client
else:
    from leftovers import requested_time
    from session import main
    from write_client import write_client

KIND = "rollback_pending"
PLAN_ACTIONS = ("replacecommit", "clustering", "compaction")


def rollback_pending(spark: SparkSession, request: Request) -> list[Row]:
    """Roll back these instants, newest first, and return a row for each that was still pending."""
    instants = request.names("instants")
    if not instants:
        raise ValueError("No instant is named; nothing is rolled back")
    hudi = spark.sparkContext._jvm.org.apache.hudi  # type: ignore[union-attr]  # noqa: SLF001 the only door to Hudi
    with write_client(spark, request=request, options=request.write_options) as client:
        done = [(instant, _roll_back(client, hudi=hudi, instant=instant)) for instant in sorted(instants, reverse=True)]
    return [{"instant": instant, "rollback": rollback} for instant, rollback in done if rollback]


def _roll_back(client: Any, *, hudi: Any, instant: str) -> str:  # noqa: ANN401 py4j makes their methods up
    """Roll back one plan; returns the rollback's own instant, empty when nothing of it is pending any more."""
    context, config = client.getEngineContext(), client.getConfig()
    # Afresh for each: the table's timeline is what it was when the table was opened.
    table = hudi.table.HoodieSparkTable.create(config, context)
    pending = table.getActiveTimeline().filterInflightsAndRequested().getInstants()
    found = [one for one in pending if requested_time(one) == instant and one.getAction() in PLAN_ACTIONS]
    if not found:
        return ""
    begun = client.getTableServiceClient().getPendingRollbackInfo(table.getMetaClient(), instant, False)  # noqa: FBT003
    if begun.isPresent():
        rollback = requested_time(begun.get().getRollbackInstant())
        print(f"Going on with the rollback {rollback} of {instant}", flush=True)
    else:
        rollback = _new_instant_time(client, hudi=hudi)
        print(f"Rolling back {found[0].toString()} by {rollback}", flush=True)
        table.scheduleRollback(context, rollback, found[0], False, config.shouldRollbackUsingMarkers(), False)  # noqa: FBT003
    # With the instant's files (True), and under the table's lock where it has one (False: not skipped).
    table.rollback(context, rollback, found[0], True, False)  # noqa: FBT003
    return str(rollback)


def _new_instant_time(client: Any, *, hudi: Any) -> Any:  # noqa: ANN401 py4j makes their methods up
    timeline = hudi.common.table.timeline
    # Since 1.0 the client makes it, before that a class did. To py4j a class that is not there is a package.
    if type(timeline.InstantGenerator).__name__ == "JavaPackage":
        return timeline.HoodieActiveTimeline.createNewInstantTime()
    return client.createNewInstantTime(True)  # noqa: FBT003


if __name__ == "__main__":
    main(KIND, job=rollback_pending)
