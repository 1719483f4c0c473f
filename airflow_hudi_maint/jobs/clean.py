"""Run Hudi's cleaner on a table: remove the files that no retained commit needs.

Arguments: ``options`` (Hudi options of this run, the cleaner's policy among them). A clean that an earlier try left
pending is finished first, by Hudi itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_hudi_maint.jobs.session import Request, Row, main
    from airflow_hudi_maint.jobs.write_client import write_client
else:
    from session import main
    from write_client import write_client

KIND = "clean"


def clean(spark: SparkSession, request: Request) -> list[Row]:
    """Clean once; no row when there was nothing to clean.

    Not by the procedure: it wants a table of the catalog, and registering one would rewrite hoodie.properties.
    """
    given = request.arguments.get("options") or {}
    options = {**request.write_options, **{str(name): str(value) for name, value in given.items()}}
    with write_client(spark, request=request, options=options) as client:
        metadata = client.clean()
    if metadata is None:
        return []
    return [
        {
            "files_deleted": metadata.getTotalFilesDeleted(),
            "earliest_commit_to_retain": metadata.getEarliestCommitToRetain(),
        }
    ]


if __name__ == "__main__":
    main(KIND, job=clean)
