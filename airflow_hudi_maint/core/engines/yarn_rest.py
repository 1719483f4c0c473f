"""YARN: ``spark-submit`` hands the application over, the resource manager's REST says how it is and ends it."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode

from airflow_hudi_maint.core.engines.cluster_settings import append
from airflow_hudi_maint.core.engines.job_code import packed_payload
from airflow_hudi_maint.core.engines.rest_client import RestClient, age, objects, quoted
from airflow_hudi_maint.core.engines.spark_settings import properties_text
from airflow_hudi_maint.core.engines.submit_command import Said, SubmitCommand
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.model.job import JobStatus

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.cluster import Submission

_LIVE = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING")
_ENDED = {
    "SUCCEEDED": JobStatus.SUCCEEDED,
    "FAILED": JobStatus.FAILED,
    "KILLED": JobStatus.KILLED,
}
_SUBMITTED = re.compile(r"\bSubmitted application (application_\d+_\d+)\b")
_SAID_LINES = 12
_PAYLOAD = "hudi_maint_job"
_STACK_OR_INFO = re.compile(r"\s+(at |\.\.\. \d)|\S+ \S+ INFO ")
"""Lines of spark-submit that tell nobody why it failed, and push those that do out of sight."""

_LOG_PAGE = re.compile(r"(?P<root>https?://[^/]+)/node/containerlogs/(?P<container>container_\w+)/")
_LOG_BYTES = 64 * 1024

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnCluster:
    """The resource managers, of which one is active and answers, or sends there.

    Applications are tagged with a digest of their name, by which they are found again. ``user_name`` is who asks where
    a name is all that the resource manager wants. ``properties`` are what ``spark-submit`` itself needs, secrets too.
    """

    managers: tuple[RestClient, ...]
    command: SubmitCommand
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    user_name: str = ""

    def submit(self, submission: Submission) -> str:
        """Hand the application over and return its id; spark-submit does not wait for the end.

        Raises EngineError when spark-submit fails (an unknown queue, a resource manager that is down); its last lines
        are in the message. One that failed or hung after YARN had the application is none: that one is live.
        """
        try:
            said = self._hand_over(submission)
        except EngineError:
            live = self._live_or_none(submission.application_name)
            if live is None:
                raise
            return live
        found = _SUBMITTED.findall(said.text)
        job_id = found[-1] if found and said.code == 0 else self._live_or_none(submission.application_name)
        if job_id is None:
            raise EngineError(f"YARN took no application ({said.words}). spark-submit said:\n{_words(said.text)}")
        return job_id

    def _hand_over(self, submission: Submission) -> Said:
        settings = {
            **self.properties,
            **submission.settings,
            "spark.master": "yarn",
            "spark.submit.deployMode": "cluster",
            "spark.yarn.submit.waitAppCompletion": "false",
            "spark.yarn.maxAppAttempts": "1",
        }
        append(settings, "spark.yarn.tags", _tag(submission.application_name), separator=",")
        with tempfile.TemporaryDirectory(prefix="hudi-maint-submit-") as folder:
            archive, script, payload = (Path(folder) / name for name in ("jobs.zip", "run_job.py", _PAYLOAD))
            archive.write_bytes(submission.packed.archive)
            script.write_bytes(submission.packed.script)
            # Not in the environment: each node keeps the script that sets it among the logs that it shows. The folder
            # that spark-submit copies files to is the user's own, as is what the nodes make of it.
            payload.write_text(packed_payload(submission.payload), encoding="ascii")
            append(settings, "spark.yarn.dist.pyFiles", str(archive), separator=",")
            append(settings, "spark.yarn.dist.files", str(payload), separator=",")
            arguments = [str(script), f"delivery-file={_PAYLOAD}"]
            return self.command.run(arguments, properties=properties_text(settings), folder=Path(folder))

    def _live_or_none(self, application_name: str) -> str | None:
        """Look for the application of a submission that went wrong, whose own error counts and no other."""
        try:
            return self.find(application_name)
        except (EngineError, InvalidSettingError):
            return None

    def state(self, job_id: str) -> JobStatus:
        """Say how an application is; one that ended counts by its final status.

        Raises EngineError for an answer that is none of YARN's.
        """
        application = self._application(job_id)
        if application is None:
            return JobStatus.LOST
        state = str(application.get("state"))
        if state in _LIVE:
            return JobStatus.RUNNING
        if state == "FINISHED":
            return _ENDED.get(str(application.get("finalStatus")), JobStatus.FAILED)
        if state not in _ENDED:
            raise EngineError(f"YARN says of {job_id} that its state is {state!r}, which is none. See rest_url")
        return _ENDED[state]

    def find(self, application_name: str) -> str | None:
        """Return the id of a live application of this name; of several the youngest."""
        query = self._query(states=",".join(_LIVE), applicationTags=_tag(application_name))
        answer = self._ask(lambda manager: manager.get(f"/ws/v1/cluster/apps{query}"))
        if answer is None:  # Else nothing would be live, and a second job be started beside one that is.
            raise EngineError(f"{self._roots} has no applications: is it the resource manager's address? See rest_url")
        apps = answer.get("apps")
        found = objects(apps, "app") if isinstance(apps, Mapping) else []
        # A manager that stands by may send on to the active one without the query: then all applications are there.
        live = (one for one in found if one.get("state") in _LIVE)
        ids = [str(one.get("id")) for one in live if one.get("name") == application_name]
        return max(ids, key=age, default=None)

    def kill(self, job_id: str) -> None:
        """Ask the resource manager to end an application."""
        path = f"/ws/v1/cluster/apps/{quoted(job_id)}/state{self._query()}"
        self._ask(lambda manager: manager.send("PUT", path, body={"state": "KILLED"}))

    def log_tail(self, job_id: str, *, lines: int) -> str:
        """Return the driver's last lines and the resource manager's diagnostics, and at the end the log's address.

        The lines are there while the driver's node shows them, as it does for some hours where YARN does not collect
        its logs elsewhere.
        """
        application = self._application(job_id) or {}
        address = str(application.get("amContainerLogs") or "")
        said = [*str(application.get("diagnostics") or "").strip().splitlines(), *filter(None, (address,))][-lines:]
        page = _LOG_PAGE.match(address)
        left = lines - len(said)
        return "\n".join((*(_driver_lines(page, lines=left) if page and left > 0 else ()), *said))

    def _application(self, job_id: str) -> Mapping[str, object] | None:
        answer = self._ask(lambda manager: manager.get(f"/ws/v1/cluster/apps/{quoted(job_id)}{self._query()}"))
        if answer is None:
            return None
        found = answer.get("app")
        if not isinstance(found, Mapping):
            raise EngineError(f"{self._roots} tells nothing of {job_id}: is it the resource manager's address?")
        return found

    def _ask(self, ask: Callable[[RestClient], _Answer]) -> _Answer:
        """Return the answer of the first that gives one; raises what all of them said."""
        said: list[EngineError] = []
        for manager in self.managers:
            try:
                return ask(manager)
            except EngineError as error:
                said.append(error)
        raise said[0] if len(said) == 1 else EngineError("; ".join(map(str, said)))

    def _query(self, **parts: str) -> str:
        named = {**({"user.name": self.user_name} if self.user_name else {}), **parts}
        return f"?{urlencode(named, safe=',')}" if named else ""

    @property
    def _roots(self) -> str:
        return ", ".join(manager.root for manager in self.managers)


def _tag(application_name: str) -> str:
    """Return a tag of YARN's: lower case, not long."""
    return f"hudi-maint-{hashlib.sha256(application_name.encode()).hexdigest()[:24]}"


def _words(text: str) -> str:
    """Return the last lines of spark-submit that say something."""
    lines = text.splitlines()
    telling = [line for line in lines if line.strip() and not _STACK_OR_INFO.match(line)]
    return "\n".join((telling or lines)[-_SAID_LINES:])


def _driver_lines(page: re.Match[str], *, lines: int) -> list[str]:
    """Return what its node shows of the driver's log, Python's output last; nothing where it does not."""
    found: list[str] = []
    for kind in ("stderr", "stdout"):
        try:
            node = RestClient(root=page["root"], what="The node of the driver", attempts=1)
            text = node.text(f"/ws/v1/node/containerlogs/{page['container']}/{kind}?size=-{_LOG_BYTES}")
        except (EngineError, InvalidSettingError):
            continue
        content = text.partition("LogContents:\n")[2].rpartition("End of LogType")[0]
        found += [line for line in content.splitlines() if line.strip()][-max(lines // 2, 1) :]
    return found[-lines:]
