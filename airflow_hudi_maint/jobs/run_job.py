"""Start the job that a driver on a cluster was submitted for. It is also ``__main__.py`` of the archive of the jobs."""

from __future__ import annotations

import runpy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_hudi_maint.jobs.remote import delivered
else:
    from remote import delivered

if __name__ == "__main__":
    delivery = delivered()
    if delivery is None:
        raise SystemExit("No job was delivered to this driver, neither by its environment nor by its argument.")
    runpy.run_module(delivery.kind, run_name="__main__")
