"""JSON over HTTP to the managers of a cluster: each call is bounded, a few failures are survived, errors say which."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import IO, TYPE_CHECKING
from urllib.parse import quote, urlsplit

from airflow_hudi_maint.core.engines.maven import trusted_certificates
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError

if TYPE_CHECKING:
    import ssl
    from http.client import HTTPMessage

_SILENCE_SECONDS = 10.0
_ANSWER_SECONDS = 60.0
_MOST_BYTES = 64 << 20
_BLOCK = 64 << 10
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
HTTP_UNAUTHORIZED = (401, 403)
HTTP_CLIENT_ERROR = 400
HTTP_NOT_FOUND = 404
HTTP_SERVER_ERROR = 500
_TRUST_SECONDS = 600.0
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
_SAME_AGAIN = (307, 308)
"""Redirects that ask for the same request at another address, as a resource manager that stands by does."""
_SAID_CHARACTERS = 500

JsonAnswer = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestClient:
    """A manager at a root address; ``what`` names it in messages. Without a user nobody signs in.

    ``silence_seconds`` bounds each wait for a piece of an answer, ``answer_seconds`` the answer as a whole.
    """

    root: str
    what: str
    user: str = ""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    attempts: int = _ATTEMPTS
    silence_seconds: float = _SILENCE_SECONDS
    answer_seconds: float = _ANSWER_SECONDS

    def __post_init__(self) -> None:
        if "@" in self.root or not _is_address(self.root):
            raise InvalidSettingError(
                f"The address of {self.what} must begin with http:// or https:// and a host, and hold no user, unlike "
                f"{self.root.rpartition('@')[2]!r}"
            )
        object.__setattr__(self, "root", self.root.rstrip("/"))

    def get(self, path: str) -> JsonAnswer | None:
        """Return the object at a path; None where there is none of this name.

        Raises:
            EngineError: It does not answer, after a few attempts, or not with JSON.
            InvalidSettingError: It does not let this user in.
        """
        answer = self._ask("GET", path, body=None)
        return None if answer is None else self._object(answer, path)

    def text(self, path: str) -> str:
        """Return a page as text; empty where there is none."""
        answer = self._ask("GET", path, body=None)
        return "" if answer is None else answer.decode(errors="replace")

    def send(self, verb: str, path: str, *, body: Mapping[str, object] | None = None) -> JsonAnswer | None:
        """Ask for a change. It is sent again only when it was certainly not received: no change is made twice.

        Raises as :meth:`get` does; the error of an answer has what it says.
        """
        answer = self._ask(verb, path, body=json.dumps(body or {}).encode())
        return None if answer is None else self._object(answer, path)

    def push(self, path: str) -> None:
        """Press a button of a web page: what comes back is a page and says nothing."""
        self._ask("POST", path, body=b"")

    def _object(self, answer: bytes, path: str) -> JsonAnswer:
        return json_object(answer, where=f"{self.what} at {self.root}{path}")

    def _ask(self, verb: str, path: str, *, body: bytes | None) -> bytes | None:
        for attempt in range(1, self.attempts + 1):
            try:
                return self._ask_once(verb, path, body=body)
            except urllib.error.HTTPError as error:
                with error:
                    if error.code == HTTP_NOT_FOUND:
                        return None
                    if error.code < HTTP_SERVER_ERROR or body is not None or attempt == self.attempts:
                        raise self._refused(error, verb=verb, path=path) from None
            except (OSError, http.client.HTTPException) as error:
                if attempt == self.attempts or (body is not None and not _was_not_received(error)):
                    raise self._silent(error) from None
            time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
        raise AssertionError  # pragma: no cover  the last attempt returned or raised

    def _ask_once(self, verb: str, path: str, *, body: bytes | None) -> bytes:
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
            self.root + path, data=body, method=verb, headers={"Accept": "application/json, text/*", **self.headers}
        )
        if body is not None:
            request.add_header("Content-Type", "application/json;charset=UTF-8")
        if self.user:
            token = base64.b64encode(f"{self.user}:{self.password}".encode()).decode("ascii")
            request.add_unredirected_header("Authorization", f"Basic {token}")
        opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=_certificates()), _SameRequestElsewhere()
        )
        with opener.open(request, timeout=self.silence_seconds) as answer:
            data = _read(answer, seconds=self.answer_seconds, most_bytes=_MOST_BYTES + 1)
            if len(data) > _MOST_BYTES:
                raise EngineError(f"{self.what} at {self.root} answers with more than {_MOST_BYTES >> 20} MiB")
            if answer.length:
                raise http.client.IncompleteRead(data, answer.length)
        return data

    def _silent(self, error: Exception) -> EngineError:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return EngineError(
            f"{self.what} at {self.root} does not answer ({reason or type(error).__name__}). "
            "Is it running, and is this its address?"
        )

    def _refused(self, error: urllib.error.HTTPError, *, verb: str, path: str) -> EngineError | InvalidSettingError:
        said = said_in(self._body_of(error))
        if error.code in HTTP_UNAUTHORIZED:
            return InvalidSettingError(
                f"{self.what} at {self.root} does not let {self.user or 'an anonymous user'} in "
                f"(HTTP {error.code}{f': {said}' if said else ''}); "
                "give login and password in its connection. Kerberos is not spoken here"
            )
        elsewhere = error.headers.get("Location") if error.code < HTTP_CLIENT_ERROR else None
        if elsewhere:
            said = f"it is at {elsewhere.partition('?')[0]}. {said}".strip()
        return EngineError(f"{self.what} at {self.root} refused {verb} {path} (HTTP {error.code}): {said}")

    def _body_of(self, error: urllib.error.HTTPError) -> str:
        """Return what came with an error; the error counts, so an answer that breaks off is no other one."""
        answer = error.fp
        if not isinstance(answer, http.client.HTTPResponse):
            return ""
        try:
            return _read(answer, seconds=self.silence_seconds, most_bytes=_BLOCK).decode(errors="replace")
        except (OSError, http.client.HTTPException):
            return ""


class _SameRequestElsewhere(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only as it was meant: Python would make a POST a GET, and does not follow with a PUT."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Return the request for the other address; raises the redirect itself where it cannot be followed."""
        if not req.data:  # Also a button: it sends whoever pressed it on to a page.
            return super().redirect_request(req, fp, code, msg, headers, newurl)
        if code not in _SAME_AGAIN:
            raise urllib.error.HTTPError(req.full_url, code, msg, headers, fp)
        return urllib.request.Request(  # noqa: S310 - the base class follows to http, https and ftp alone
            newurl, data=req.data, headers=dict(req.headers), method=req.get_method(), unverifiable=True
        )


def json_object(answer: bytes, *, where: str) -> JsonAnswer:
    """Return the object that an answer is; none at all is an empty one. Raises EngineError for anything else."""
    try:
        document = json.loads(answer or b"{}")
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise EngineError(f"{where} does not answer with JSON, but: {answer[:200]!r}. Is it another server's address?")
    return document


def quoted(name: str) -> str:
    """Return a name as one part of a path or a query."""
    return quote(name, safe="")


def clients(roots: Sequence[str], *, what: str, user: str = "", password: str = "") -> tuple[RestClient, ...]:
    """Return a client for each of the servers that stand in for one another.

    Where there are several, each gets one attempt: the next one is better than the same again.
    """
    attempts = _ATTEMPTS if len(roots) == 1 else 1
    return tuple(RestClient(root=one, what=what, user=user, password=password, attempts=attempts) for one in roots)


def objects(document: Mapping[str, object], name: str) -> list[Mapping[str, object]]:
    """Return the objects of a list in an answer; what is there instead of it is none."""
    found = document.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def age(job_id: str) -> tuple[int, ...]:
    """Return what ids of one manager are sorted by, the youngest last: their numbers grow beyond their zeros.

    >>> max(("application_7_9999", "application_7_10000"), key=age)
    'application_7_10000'
    """
    return tuple(int(number) for number in re.findall(r"\d+", job_id))


def addresses(text: str) -> tuple[str, ...]:
    """Return the addresses of a manager and those that stand by for it, which are separated by commas."""
    return tuple(filter(None, (one.strip() for one in text.split(","))))


def _certificates() -> ssl.SSLContext:
    """Return what is trusted, read anew when other files are named and every few minutes.

    Reading takes a quarter of a second of work, and a job is asked after each second.
    """
    named = tuple(os.environ.get(name) for name in _CERTIFICATE_VARIABLES)
    return _read_certificates(named, int(time.monotonic() // _TRUST_SECONDS))


@lru_cache(maxsize=1)
def _read_certificates(_named: tuple[str | None, ...], _age: int) -> ssl.SSLContext:
    return trusted_certificates()


def _is_address(root: str) -> bool:
    try:
        parts = urlsplit(root)
        _ = parts.port  # raises for one that is no number
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not any(one.isspace() for one in root)


def _read(answer: http.client.HTTPResponse, *, seconds: float, most_bytes: int) -> bytes:
    """Read an answer to its end, or to this many bytes or more; one that trickles in is given up by TimeoutError."""
    until, data = time.monotonic() + seconds, bytearray()
    while len(data) < most_bytes and (block := answer.read1(_BLOCK)):
        data += block
        if time.monotonic() > until:
            raise TimeoutError(f"its answer takes longer than {seconds:.0f} s")
    return bytes(data)


def _was_not_received(error: Exception) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, ConnectionRefusedError)


def said_in(text: str) -> str:
    """Return the message in an error's body, which each manager has under another name."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()[:_SAID_CHARACTERS]
    if isinstance(document, dict):
        remote = document.get("RemoteException")
        for one in (remote if isinstance(remote, dict) else {}, document):
            for name in ("message", "msg"):
                if isinstance(one.get(name), str):
                    return str(one[name])[:_SAID_CHARACTERS]
    return text.strip()[:_SAID_CHARACTERS]
