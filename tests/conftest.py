"""What all tests share: a home for Airflow that is nobody's own, and how Hypothesis searches."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Importing Airflow is enough to make it write into its home, so its home is set before any test imports anything.
import tests.airflow.environment  # noqa: F401
from airflow_hudi_maint.triggers import settling

# On a loaded machine a deadline finds the load. CI looks at the same examples every time, so that red means a change.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# A JVM of a test lives for seconds, which are mostly compiling: without the second compiler that takes half the time.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# Triggers of tests wake nobody up whom an executor could take for lost.
settling.SETTLE_SECONDS = 0.0
