"""Spark's own cluster manager: its REST server for submissions, and its web page's JSON for applications.

``spark-submit`` refuses Python in this manager's cluster mode. The REST server does not look at what it starts: the
class that Spark itself runs Python drivers with is the main class, and the archive of the jobs, which Python runs as it
is, stands in for the jar that workers fetch. Spark makes each setting of such a driver a ``-D`` on its command line, so
secrets travel in its environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.engines.job_code import payload_variables
from airflow_hudi_maint.core.engines.rest_client import RestClient, addresses, age, clients, objects, quoted
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.model.job import JobStatus

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.cluster import Submission

REST_PORT = 6066
UI_PORT = 8080

_PYTHON_MAIN = "org.apache.spark.deploy.PythonRunner"
_FETCHED = "{{USER_JAR}}"
"""What a worker replaces by the path of the file that it fetched."""

_STATES = {
    "SUBMITTED": JobStatus.RUNNING,
    "RUNNING": JobStatus.RUNNING,
    "RELAUNCHING": JobStatus.RUNNING,
    "UNKNOWN": JobStatus.RUNNING,  # its worker is silent; the master gives it up after a minute
    "WAITING": JobStatus.RUNNING,
    "FINISHED": JobStatus.SUCCEEDED,
    "FAILED": JobStatus.FAILED,
    "ERROR": JobStatus.FAILED,
    "KILLED": JobStatus.KILLED,
}
_MODULES = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
JAVA_MODULES = " ".join(
    ("-XX:+IgnoreUnrecognizedVMOptions", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _MODULES))
)
"""What Spark needs on Java 17 and spark-submit adds by itself; Java 8 takes it for nothing."""

_APPLICATION = "app-"
_LOG_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class StandaloneCluster:
    """A master and its standbys: REST servers and web pages, in the same order."""

    master: str
    rest: tuple[RestClient, ...]
    ui: tuple[RestClient, ...]

    @classmethod
    def of(cls, master: str, *, rest_url: str | None = None, ui_url: str | None = None) -> StandaloneCluster:
        """Return the cluster of a ``spark://host:port,host:port``, with its servers at their usual ports or at URLs."""
        hosts = [one.rpartition(":")[0] or one for one in master.removeprefix("spark://").split(",")]
        rest = addresses(rest_url) if rest_url else [f"http://{host}:{REST_PORT}" for host in hosts]
        pages = addresses(ui_url) if ui_url else [f"http://{host}:{UI_PORT}" for host in hosts]
        return cls(
            master=master,
            rest=clients(rest, what="The REST server of Spark's master"),
            ui=clients(pages, what="The web page of Spark's master"),
        )

    def submit(self, submission: Submission) -> str:
        """Have a worker start the driver.

        Raises EngineError when no master is alive or the master refuses; its words are in the message.
        """
        payload = {**submission.payload, "ends_jvm": True}
        settings = {
            **submission.settings,
            "spark.master": self.master,
            "spark.submit.deployMode": "cluster",
            "spark.driver.extraJavaOptions": f"{JAVA_MODULES} "
            f"{submission.settings.get('spark.driver.extraJavaOptions', '')}".strip(),
        }
        body = {
            "action": "CreateSubmissionRequest",
            "clientSparkVersion": "3.5",
            "appResource": submission.code().archive,
            "mainClass": _PYTHON_MAIN,
            "appArgs": [_FETCHED, ""],
            "sparkProperties": settings,
            "environmentVariables": payload_variables(payload),
        }
        said: list[str] = []
        for answer in self._each(lambda rest: rest.send("POST", "/v1/submissions/create", body=body), said=said):
            if answer.get("success") is True and isinstance(answer.get("submissionId"), str):
                return str(answer["submissionId"])
            said.append(str(answer.get("message") or answer))
        raise EngineError(f"The cluster {self.master} took no submission: {'; '.join(said)}")

    def state(self, job_id: str) -> JobStatus:
        """Say how a driver is, or an application that was found by its name.

        LOST is what a master that is alive does not know. One that stands by or recovers says so, and knows nothing.

        Raises EngineError when no such master answers, or one answers with what is no state.
        """
        if job_id.startswith(_APPLICATION):
            return self._application_state(job_id)
        said: list[str] = []
        path = f"/v1/submissions/status/{quoted(job_id)}"
        unknown = False
        for answer in self._each(lambda rest: rest.get(path), said=said):
            if answer.get("success") is True:
                return _state(answer.get("driverState"), job_id=job_id)
            why = answer.get("message")
            unknown = unknown or (answer.get("success") is False and not why)
            said.append(str(why or answer))
        if unknown:
            return JobStatus.LOST
        raise EngineError(f"How driver {job_id} is cannot be asked: {'; '.join(said)}")

    def find(self, application_name: str) -> str | None:
        """Return the id of a live application of this name; of several the youngest."""
        live = [
            str(one.get("id")) for one in objects(self._page(), "activeapps") if one.get("name") == application_name
        ]
        return max(live, key=age, default=None)

    def kill(self, job_id: str) -> None:
        """End a driver by REST, an application by the button of the master's page.

        Each master is asked: one that stands by does nothing. Raises EngineError when none takes the request.
        """
        said: list[str] = []
        taken: list[object]
        if job_id.startswith(_APPLICATION):
            page = f"/app/kill/?id={quoted(job_id)}&terminate=true"
            taken = [ui for ui in self.ui if _pushed(ui, page, said=said)]
        else:
            path = f"/v1/submissions/kill/{quoted(job_id)}"
            taken = list(self._each(lambda rest: rest.send("POST", path), said=said))
        if not taken:
            raise EngineError(f"{job_id} cannot be ended: {'; '.join(said)}")

    def log_tail(self, job_id: str, *, lines: int) -> str:
        """Return the end of what the driver wrote, as its worker's page shows it; Python's output comes last.

        Spark's runner of Python drivers puts both outputs of Python on standard output, the JVM's log is the other one.
        """
        page = self._page()
        drivers = [*objects(page, "activedrivers"), *objects(page, "completeddrivers")]
        worker = next((one.get("worker") for one in drivers if one.get("id") == job_id), None)
        address = next((one.get("webuiaddress") for one in objects(page, "workers") if one.get("id") == worker), None)
        if not isinstance(address, str):
            return ""
        client = RestClient(root=address, what="The page of Spark's worker", attempts=1)
        said: list[str] = []
        for kind in ("stderr", "stdout"):
            text = client.text(f"/log/?driverId={quoted(job_id)}&logType={kind}&byteLength={_LOG_BYTES}")
            said += [line for line in text.splitlines() if line.strip()][-(lines // 2) :]
        return "\n".join(said)

    def _application_state(self, job_id: str) -> JobStatus:
        page = self._page()
        applications = [*objects(page, "activeapps"), *objects(page, "completedapps")]
        found = next((one for one in applications if one.get("id") == job_id), None)
        return JobStatus.LOST if found is None else _state(found.get("state"), job_id=job_id)

    def _page(self) -> Mapping[str, object]:
        """Return what the page of the master that is alive shows."""
        said: list[str] = []
        for ui in self.ui:
            try:
                page = ui.get("/json/")
            except EngineError as error:
                said.append(str(error))
                continue
            if page is not None and page.get("status") == "ALIVE":
                return page
            said.append(f"the master at {ui.root} is {page.get('status') if page else 'not there'}")
        raise EngineError(f"No master of {self.master} shows its applications: {'; '.join(said)}. See ui_url")

    def _each(
        self, ask: Callable[[RestClient], Mapping[str, object] | None], *, said: list[str]
    ) -> Iterator[Mapping[str, object]]:
        """Yield what each REST server answers; of those that do not, ``said`` gets the reason."""
        for rest in self.rest:
            try:
                answer = ask(rest)
            except (EngineError, InvalidSettingError) as error:
                said.append(str(error))
            else:
                if answer is None:
                    said.append(f"{rest.root} knows no submissions: is it the REST server? See rest_url")
                else:
                    yield answer


def _state(said: object, *, job_id: str) -> JobStatus:
    state = _STATES.get(said) if isinstance(said, str) else None
    if state is None:
        raise EngineError(f"Spark's master says of {job_id} that its state is {said!r}, which is none")
    return state


def _pushed(ui: RestClient, page: str, *, said: list[str]) -> bool:
    """Press a button of a master's page; ``said`` gets the reason where that fails."""
    try:
        ui.push(page)
    except (EngineError, InvalidSettingError) as error:
        said.append(str(error))
        return False
    return True
