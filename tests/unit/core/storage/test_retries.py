"""Which failures of storage pass, and how long is waited for them."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from aiohttp import ClientPayloadError, ServerDisconnectedError
from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.storage.retries import RetryPolicy, is_denied, is_outdated, is_transient, is_unreached


def client_error(status: int, code: str) -> ClientError:
    response: Mapping[str, Any] = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(response, "GetObject")


def translated(kind: OSError, cause: BaseException) -> OSError:
    """As s3fs raises: an error of its own over that of botocore."""
    kind.__cause__ = cause
    return kind


def answered(status: int) -> requests.HTTPError:
    response = requests.Response()
    response.status_code = status
    return requests.HTTPError(response=response)


PASSING = [
    ConnectionResetError(),
    TimeoutError(),
    OSError(errno.ETIMEDOUT, "timed out"),
    translated(OSError(errno.EBUSY, "slow"), client_error(503, "SlowDown")),
    translated(OSError(errno.EIO, "gateway"), client_error(502, "502")),
    client_error(400, "RequestTimeout"),
    client_error(500, "InternalError"),
    ReadTimeoutError(endpoint_url="http://s3"),
    ConnectTimeoutError(endpoint_url="http://s3"),
    EndpointConnectionError(endpoint_url="http://s3"),
    ServerDisconnectedError(),
    ClientPayloadError(),
    answered(503),
    answered(429),
    requests.ConnectionError(),
    requests.ReadTimeout(),
]
LASTING = [
    FileNotFoundError("x"),
    PermissionError("x"),
    translated(PermissionError("denied"), client_error(403, "AccessDenied")),
    client_error(404, "NoSuchKey"),
    client_error(400, "InvalidRequest"),
    client_error(409, "OperationAborted"),
    client_error(412, "PreconditionFailed"),
    answered(403),
    answered(400),
    NoCredentialsError(),
    ValueError("x"),
    OSError(errno.ENOSPC, "full"),
    RuntimeError("x"),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_passes(error: Exception) -> None:
    """Throttling, failures of the server itself, and connections that break or do not come about."""
    assert is_transient(error)
    assert not is_denied(error)


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_stays(error: Exception) -> None:
    """What is missing, forbidden, malformed or in conflict is answered alike each time."""
    assert not is_transient(error)


def test_a_refusal_is_known_by_status_by_class_and_by_the_lack_of_credentials() -> None:
    """But credentials that ran out are no refusal: there may be fresh ones."""
    assert is_denied(PermissionError())
    assert is_denied(answered(401))
    assert is_denied(NoCredentialsError())
    assert is_denied(translated(PermissionError(), client_error(403, "SignatureDoesNotMatch")))
    expired = translated(PermissionError(), client_error(400, "ExpiredToken"))
    assert (False, True, False) == (is_denied(expired), is_outdated(expired), is_transient(expired))


def test_waits_double_vary_and_have_a_limit() -> None:
    """A half to three halves of 0.2, 0.4, 0.8 … up to the longest, as the jitter says."""
    policy = RetryPolicy(first_wait_seconds=0.2, longest_wait_seconds=1.0, jitter=iter((0.0, 0.5, 1.0, 0.5)).__next__)

    assert [0.1, 0.4, pytest.approx(1.2), 1.0] == [policy.wait_seconds(attempt) for attempt in range(4)]


def test_a_call_ends_at_its_first_success() -> None:
    """It is told the number of the try, and each further try is announced."""
    waits: list[float] = []
    tries: list[int] = []
    retried: list[str] = []

    def act(attempt: int) -> str:
        tries.append(attempt)
        if attempt < 2:
            raise ConnectionResetError
        return "done"

    policy = RetryPolicy(jitter=lambda: 0.5, sleep=waits.append)
    assert "done" == policy.call(act, on_retry=lambda: retried.append("again"))
    assert ([0, 1, 2], [0.2, 0.4], 2) == (tries, waits, len(retried))


def test_a_call_gives_up_with_the_last_error() -> None:
    """At the number of tries that is set, and at once for what stays."""

    def broken(attempt: int) -> None:
        raise ConnectionResetError(attempt)

    def missing(attempt: int) -> None:
        raise FileNotFoundError(attempt)

    policy = RetryPolicy(attempts=3, sleep=lambda _: None)
    with pytest.raises(ConnectionResetError, match="2"):
        policy.call(broken, on_retry=lambda: None)
    with pytest.raises(FileNotFoundError, match="0"):
        policy.call(missing, on_retry=lambda: None)
    with pytest.raises(InvalidSettingError, match="attempts=0"):
        RetryPolicy(attempts=0)


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://s3"),
        translated(OSError(errno.EIO, "s3"), ConnectTimeoutError(endpoint_url="http://s3")),
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        requests.ConnectTimeout(),
    ],
)
def test_nobody_answered_is_told_from_a_server_that_failed(error: BaseException) -> None:
    """Then the address may be wrong as well, so it is worth a look."""
    assert is_unreached(error)
    assert is_transient(error)


@pytest.mark.parametrize("error", [client_error(503, "SlowDown"), ReadTimeoutError(endpoint_url="http://s3")])
def test_who_answers_late_or_busily_is_there(error: BaseException) -> None:
    assert not is_unreached(error)
