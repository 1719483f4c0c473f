"""YARN: ``spark-submit`` hands the application over, the resource manager's REST says how it is and ends it."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.job_code import payload_variables
from airflow_hudi_maint.core.engines.rest_client import RestClient, quoted
from airflow_hudi_maint.core.engines.spark_settings import properties_text
from airflow_hudi_maint.core.engines.submit_command import SubmitCommand
from airflow_hudi_maint.core.errors import EngineError
from airflow_hudi_maint.core.model.job import JobStatus

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.cluster import Submission

_LIVE = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_ENDED = {
    "SUCCEEDED": JobStatus.SUCCEEDED,
    "FAILED": JobStatus.FAILED,
    "KILLED": JobStatus.KILLED,
}
_ID = re.compile(r"\bapplication_\d+_\d+\b")
_SAID_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnCluster:
    """A resource manager. Applications are tagged with a digest of their name, by which they are found again."""

    manager: RestClient
    command: SubmitCommand
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)

    def submit(self, submission: Submission) -> str:
        """Hand the application over and return its id; spark-submit does not wait for the end.

        Raises EngineError when spark-submit fails (an unknown queue, a resource manager that is down); its last lines
        are in the message.
        """
        variables = payload_variables(submission.payload)
        settings = {
            **self.properties,
            **submission.settings,
            "spark.master": "yarn",
            "spark.submit.deployMode": "cluster",
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "1",
            "spark.yarn.tags": _tag(submission.application_name),
            **{f"spark.yarn.appMasterEnv.{name}": value for name, value in variables.items()},
        }
        with tempfile.TemporaryDirectory(prefix="hudi-maint-submit-") as folder:
            archive, script = Path(folder) / "jobs.zip", Path(folder) / "run_job.py"
            archive.write_bytes(submission.packed.archive)
            script.write_bytes(submission.packed.script)
            settings["spark.submit.pyFiles"] = str(archive)
            said = self.command.run([str(script)], properties=properties_text(settings), folder=Path(folder))
        found = _ID.findall(said.text)
        job_id = found[-1] if found else self.find(submission.application_name)
        if said.code != 0 or job_id is None:
            last = "\n".join(said.text.splitlines()[-_SAID_LINES:])
            raise EngineError(f"YARN took no application ({said.words}). spark-submit said:\n{last}")
        return job_id

    def state(self, job_id: str) -> JobStatus:
        """Say how an application is; one that ended counts by its final status."""
        application = self._application(job_id)
        if application is None:
            return JobStatus.LOST
        state = str(application.get("state"))
        if state in ("FAILED", "KILLED"):
            return _ENDED[state]
        if state == "FINISHED":
            return _ENDED.get(str(application.get("finalStatus")), JobStatus.FAILED)
        return JobStatus.RUNNING

    def find(self, application_name: str) -> str | None:
        """Return the id of a live application of this name; of several the youngest."""
        tag = _tag(application_name)
        answer = self.manager.get(f"/ws/v1/cluster/apps?states={_LIVE}&applicationTags={tag}") or {}
        apps = answer.get("apps")
        found = apps.get("app") if isinstance(apps, Mapping) else None
        names = [str(one["id"]) for one in found if one.get("name") == application_name] if found else []
        return max(names, default=None)

    def kill(self, job_id: str) -> None:
        """Ask the resource manager to end an application."""
        self.manager.send("PUT", f"/ws/v1/cluster/apps/{quoted(job_id)}/state", body={"state": "KILLED"})

    def log_tail(self, job_id: str, *, lines: int) -> str:
        """Return the resource manager's diagnostics: YARN keeps the log itself elsewhere, and the address is added."""
        application = self._application(job_id) or {}
        said = [str(application.get("diagnostics") or "").strip(), str(application.get("amContainerLogs") or "")]
        return "\n".join("\n".join(filter(None, said)).splitlines()[-lines:])

    def _application(self, job_id: str) -> Mapping[str, object] | None:
        answer = self.manager.get(f"/ws/v1/cluster/apps/{quoted(job_id)}")
        found = None if answer is None else answer.get("app")
        return found if isinstance(found, Mapping) else None


def _tag(application_name: str) -> str:
    """Return a tag of YARN's: lower case, not long."""
    return f"hudi-maint-{hashlib.sha256(application_name.encode()).hexdigest()[:24]}"
