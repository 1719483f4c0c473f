"""Livy: batches over REST. Its server puts a batch's settings on the command line of its own spark-submit.

So no secret is given to it: credentials of storage and of lock providers have to be the cluster's own. The request lies
in the job's folder instead, where only who reads the table reads it.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from airflow_hudi_maint.core.engines.cluster import ClusterEngine
from airflow_hudi_maint.core.engines.rest_client import quoted
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.model.job import JobStatus
from airflow_hudi_maint.core.model.secrets import secrets_in

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.cluster import JobExchange, Submission
    from airflow_hudi_maint.core.model.job import JobRequest

ENGINE = "livy"

# SparkApp's states and a batch's own, as the REST API of Livy 0.7 and 0.8 documents them.
_STATES = {
    "success": JobStatus.SUCCEEDED,
    "error": JobStatus.FAILED,
    "dead": JobStatus.FAILED,
    "killed": JobStatus.KILLED,
}
_FIELDS = {
    "spark.driver.memory": "driverMemory",
    "spark.driver.cores": "driverCores",
    "spark.executor.memory": "executorMemory",
    "spark.executor.cores": "executorCores",
    "spark.executor.instances": "numExecutors",
    "spark.yarn.queue": "queue",
}
_NUMBERS = ("driverCores", "executorCores", "numExecutors")
_PAGE = 100


class Rest(Protocol):
    """A server that is asked for JSON: with this package's own client, or with what an Airflow provider has for it."""

    @property
    def root(self) -> str:
        """The address, for messages."""
        ...

    def get(self, path: str) -> Mapping[str, object] | None:
        """Return the object at a path; None where there is none of this name."""
        ...

    def send(self, verb: str, path: str, *, body: Mapping[str, object] | None = None) -> Mapping[str, object] | None:
        """Ask for a change, which is never made twice; None where there is nothing of this name."""
        ...


class LivyClient(Protocol):
    """What is asked of Livy."""

    def create(self, batch: Mapping[str, object]) -> Mapping[str, object]:
        """Create a batch and return it."""
        ...

    def batch(self, batch_id: str) -> Mapping[str, object] | None:
        """Return a batch; None for one that Livy does not know."""
        ...

    def batches(self) -> Sequence[Mapping[str, object]]:
        """Return all batches that Livy keeps."""
        ...

    def delete(self, batch_id: str) -> None:
        """End a batch and forget it."""
        ...

    def log(self, batch_id: str, *, lines: int) -> Sequence[str]:
        """Return the last lines of a batch's log."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LivyRest:
    """Livy's own REST API."""

    rest: Rest

    def create(self, batch: Mapping[str, object]) -> Mapping[str, object]:
        """Create a batch; raises EngineError with Livy's words when it is refused."""
        answer = self.rest.send("POST", "/batches", body=batch)
        if answer is None:
            raise EngineError(f"{self.rest.root} has no batches: is it Livy's address?")
        return answer

    def batch(self, batch_id: str) -> Mapping[str, object] | None:
        """Return a batch; None for one that Livy does not know."""
        return self.rest.get(f"/batches/{quoted(batch_id)}")

    def batches(self) -> Sequence[Mapping[str, object]]:
        """Return all batches that Livy keeps, page by page."""
        found: list[Mapping[str, object]] = []
        while True:
            answer = self.rest.get(f"/batches?from={len(found)}&size={_PAGE}") or {}
            page = answer.get("sessions")
            new = [one for one in page if isinstance(one, Mapping)] if isinstance(page, list) else []
            if found and new[:1] == found[:1]:  # a server that does not know pages would go on for ever
                return found
            found += new
            if len(new) < _PAGE:
                return found

    def delete(self, batch_id: str) -> None:
        """End a batch and forget it; one that is gone is fine."""
        self.rest.send("DELETE", f"/batches/{quoted(batch_id)}")

    def log(self, batch_id: str, *, lines: int) -> Sequence[str]:
        """Return the last lines of a batch's log."""
        answer = self.rest.get(f"/batches/{quoted(batch_id)}/log?from=-1&size={lines}") or {}
        found = answer.get("log")
        return [str(one) for one in found] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True, kw_only=True)
class LivyCluster:
    """Livy as a manager of applications. Livy lets no two live batches have one name, so none is ever doubled."""

    client: LivyClient

    def submit(self, submission: Submission) -> str:
        """Create the batch.

        Raises InvalidSettingError for a job with a secret, EngineError when Livy refuses the batch.
        """
        request = submission.payload["request"]
        _refuse_secrets(submission, request)
        submission.leave("request.json", json.dumps(request).encode())
        code = submission.code()
        kind = request["kind"] if isinstance(request, Mapping) else ""
        told = {name: submission.payload[name] for name in ("version", "folder", "claim")}
        packed = base64.b64encode(gzip.compress(json.dumps({**told, "kind": kind}).encode(), mtime=0)).decode("ascii")
        own = {_FIELDS[name]: value for name, value in submission.settings.items() if name in _FIELDS}
        batch: dict[str, object] = {
            "name": submission.application_name,
            "file": code.script,
            "pyFiles": [code.archive],
            "args": [f"delivery={packed}"],
            "conf": {name: value for name, value in submission.settings.items() if name not in _FIELDS},
            **{name: int(value) if name in _NUMBERS else value for name, value in own.items()},
        }
        created = self.client.create(batch)
        if not isinstance(created.get("id"), int):
            raise EngineError(f"Livy answered without a batch's id: {created}")
        return str(created["id"])

    def state(self, job_id: str) -> JobStatus:
        """Say how a batch is; LOST for one that Livy has forgotten, as it does some time after the end."""
        batch = self.client.batch(job_id)
        return JobStatus.LOST if batch is None else _STATES.get(str(batch.get("state")), JobStatus.RUNNING)

    def find(self, application_name: str) -> str | None:
        """Return the id of a live batch of this name."""
        live = [
            str(one["id"])
            for one in self.client.batches()
            if one.get("name") == application_name and str(one.get("state")) not in _STATES
        ]
        return live[-1] if live else None

    def kill(self, job_id: str) -> None:
        """End a batch; Livy forgets it with that."""
        self.client.delete(job_id)

    def log_tail(self, job_id: str, *, lines: int) -> str:
        """Return the end of what Livy keeps of the batch's log."""
        return "\n".join(self.client.log(job_id, lines=lines))


def livy_engine(
    client: LivyClient,
    *,
    bundle: str,
    exchange: Callable[[], JobExchange],
    settings: Callable[[JobRequest], tuple[Mapping[str, str], Mapping[str, str]]],
    code_url: str | None = None,
) -> ClusterEngine:
    """Return an engine that runs jobs as batches of Livy."""
    return ClusterEngine(
        name=ENGINE,
        bundle=bundle,
        manager=LivyCluster(client=client),
        exchange=exchange,
        settings=settings,
        code_url=code_url,
    )


def _refuse_secrets(submission: Submission, request: object) -> None:
    secret = submission.payload.get("settings")
    names = sorted(secret) if isinstance(secret, Mapping) else []
    for field in ("write_options", "storage_options"):
        options = request.get(field) if isinstance(request, Mapping) else None
        if isinstance(options, Mapping):
            names += sorted(name for name, value in options.items() if any(secrets_in({name: value})))
    if names:
        raise InvalidSettingError(
            f"Livy would show {', '.join(names)} on its server's command line or on the table's storage: give the "
            "cluster credentials of its own (a role, a credential file), and leave them out here"
        )
