"""Which failures of storage pass by themselves, and how long to wait for that.

Back ends of fsspec raise what their client library raises, each its own. So a failure is judged by what all of them
have in common: the HTTP status and the error code of the answer, where there was one, and the names of classes.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from airflow_hudi_maint.core.errors import InvalidSettingError

_Result = TypeVar("_Result")

_TRANSIENT_STATUS = frozenset((408, 425, 429, 500, 502, 503, 504, 509))
_TRANSIENT_CODES = frozenset(
    (
        *("SlowDown", "Throttling", "ThrottlingException", "ThrottledException", "TooManyRequests"),
        *("RequestThrottled", "RequestLimitExceeded", "BandwidthLimitExceeded", "PriorRequestNotComplete"),
        *("RequestTimeout", "InternalError", "InternalServerError", "ServiceUnavailable", "ServerBusy"),
    )
)
_TRANSIENT_CLASSES = frozenset(
    (
        "ConnectionError",  # the builtin, and that of requests, which is none of its kind
        "TimeoutError",
        *("HTTPClientError", "ResponseParserError"),  # botocore: every failure of the transport; an answer cut short
        *("ClientConnectionError", "ClientPayloadError"),  # aiohttp
        *("Timeout", "ChunkedEncodingError"),  # requests
        *("ProtocolError", "IncompleteRead"),  # urllib3 and http.client
        "ServiceRequestError",  # azure
        "TransportError",  # google.auth
    )
)
_TRANSIENT_ERRNO = frozenset(
    (
        *(errno.EBUSY, errno.EAGAIN, errno.EINTR, errno.ETIMEDOUT, errno.EREMOTEIO),
        *(errno.ECONNRESET, errno.ECONNABORTED, errno.ECONNREFUSED, errno.EPIPE, errno.ENETUNREACH, errno.EHOSTUNREACH),
    )
)
_DENIED_STATUS = frozenset((401, 403))
_DENIED_CLASSES = frozenset(("NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError"))
_UNREACHED_CLASSES = frozenset(
    (
        *("EndpointConnectionError", "ConnectTimeoutError"),  # botocore
        "ClientConnectorError",  # aiohttp
        *("ConnectTimeout", "NewConnectionError"),  # requests and urllib3
        "ConnectionRefusedError",
    )
)
_OUTDATED_CODES = frozenset(("ExpiredToken", "TokenRefreshRequired", "RequestExpired", "ExpiredTokenException"))


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed in a moment: throttling, a server's own failure, a broken connection.

    Never for what is missing, forbidden or malformed.
    """
    if isinstance(error, FileNotFoundError | PermissionError | FileExistsError | NotADirectoryError):
        return False
    chain = tuple(_chain(error))
    statuses = {status for status in map(_status, chain) if status is not None}
    if any(_code(one) in _TRANSIENT_CODES for one in chain) or statuses & _TRANSIENT_STATUS:
        return True
    if statuses:  # the server answered, and the answer will be the same
        return False
    return any(_class_names(one) & _TRANSIENT_CLASSES for one in chain) or any(
        isinstance(one, OSError) and one.errno in _TRANSIENT_ERRNO for one in chain
    )


def is_denied(error: BaseException) -> bool:
    """Whether the storage refuses who asks: wrong or missing credentials, a right that is not granted, read-only.

    Not for credentials that ran out: another try of the task reads fresh ones.
    """
    chain = tuple(_chain(error))
    if is_outdated(error):
        return False
    return any(
        isinstance(one, PermissionError)
        or (isinstance(one, OSError) and one.errno == errno.EROFS)
        or _status(one) in _DENIED_STATUS
        or _class_names(one) & _DENIED_CLASSES
        for one in chain
    )


def is_outdated(error: BaseException) -> bool:
    """Whether the credentials were good and ran out."""
    return any(_code(one) in _OUTDATED_CODES for one in _chain(error))


def is_unreached(error: BaseException) -> bool:
    """Whether nobody answered at all: a server that is down, or an address that is none."""
    return any(_class_names(one) & _UNREACHED_CLASSES for one in _chain(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often a request is tried, with waits that double and vary, so that many callers do not come back at once.

    Before try ``n`` the wait is ``first_wait_seconds × 2**(n - 2)``, at most ``longest_wait_seconds``, times a factor
    between 0.5 and 1.5 of which ``jitter`` (a number from 0 to 1) decides.
    """

    attempts: int = 5
    first_wait_seconds: float = 0.2
    longest_wait_seconds: float = 10.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.attempts < 1:
            msg = f"attempts={self.attempts}; expected at least 1"
            raise InvalidSettingError(msg)

    def call(self, act: Callable[[int], _Result], *, on_retry: Callable[[], None]) -> _Result:
        """Call ``act`` with the number of the try, from 0, until it returns or fails for good.

        ``act`` must have the same effect however often it ran before.
        """
        for attempt in range(self.attempts - 1):
            try:
                return act(attempt)
            except Exception as error:
                if not is_transient(error):
                    raise
            self.sleep(self.wait_seconds(attempt))
            on_retry()
        return act(self.attempts - 1)

    def wait_seconds(self, attempt: int) -> float:
        """The wait after try number ``attempt`` failed."""
        return min(self.longest_wait_seconds, self.first_wait_seconds * 2.0**attempt) * (0.5 + self.jitter())


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what caused it: s3fs translates botocore's errors and keeps them as causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def _status(error: BaseException) -> int | None:
    """The HTTP status of the answer, wherever the library keeps it; None without one."""
    response = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        metadata = response.get("ResponseMetadata")
        status = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
        return status if isinstance(status, int) else None
    for holder in (response, error):
        for name in ("status_code", "status", "code"):
            status = getattr(holder, name, None)
            if isinstance(status, int | str) and str(status).isdigit():
                return int(status)
    return None


def _code(error: BaseException) -> str | None:
    response = getattr(error, "response", None)
    detail = response.get("Error") if isinstance(response, Mapping) else None
    code = detail.get("Code") if isinstance(detail, Mapping) else getattr(error, "error_code", None)
    return code if isinstance(code, str) else None


def _class_names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
