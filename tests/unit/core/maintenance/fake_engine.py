"""An engine without Spark, for what happens around a job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE
from airflow_hudi_maint.core.model.job import JobHandle, JobProgress, JobReport, JobRequest, JobStatus


@dataclass
class FakeEngine:
    """An engine whose jobs do what the test says, at once."""

    act: Callable[[JobRequest], None] = lambda _: None
    running: bool = False
    requests: list[JobRequest] = field(default_factory=list)
    name: str = "fake"
    bundle: str = DEFAULT_BUNDLE
    outlives: bool = False
    answer: JobReport = JobReport(ok=True)  # noqa: RUF009 a frozen value

    def submit(self, request: JobRequest) -> JobHandle:
        self.requests.append(request)
        self.act(request)
        return JobHandle(engine=self.name, job_id=str(len(self.requests)))

    def status(self, handle: JobHandle) -> JobStatus:
        return JobStatus.RUNNING if self.running else JobStatus.SUCCEEDED

    def progress(self, handle: JobHandle) -> JobProgress | None:
        return None

    def report(self, handle: JobHandle) -> JobReport | None:
        return self.answer

    def log_tail(self, handle: JobHandle, *, lines: int = 40) -> str:
        return ""

    def kill(self, handle: JobHandle, *, timeout_seconds: float = 30.0) -> None:
        self.running = False

    def close(self, handle: JobHandle) -> None:
        return
