"""JSON over HTTP to the managers of a cluster: each call is bounded, a few failures are survived, errors say which."""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from airflow_hudi_maint.core.engines.maven import trusted_certificates
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError

_SILENCE_SECONDS = 10.0
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5
_HTTP_UNAUTHORIZED = (401, 403)
_HTTP_NOT_FOUND = 404
_HTTP_SERVER_ERROR = 500
_SAID_CHARACTERS = 500

JsonAnswer = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestClient:
    """A manager at a root address; ``what`` names it in messages. Without a user nobody signs in."""

    root: str
    what: str
    user: str = ""
    password: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    attempts: int = _ATTEMPTS
    silence_seconds: float = _SILENCE_SECONDS

    def __post_init__(self) -> None:
        if not self.root.startswith(("http://", "https://")) or "@" in self.root:
            raise InvalidSettingError(
                f"The address of {self.what} must begin with http:// or https:// and hold no user, unlike "
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
        try:
            document = json.loads(answer or b"{}")
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise EngineError(
                f"{self.what} at {self.root}{path} does not answer with JSON, but: {answer[:200]!r}. "
                "Is it another server's address?"
            )
        return document

    def _ask(self, verb: str, path: str, *, body: bytes | None) -> bytes | None:
        for attempt in range(1, self.attempts + 1):
            try:
                return self._ask_once(verb, path, body=body)
            except urllib.error.HTTPError as error:
                if error.code == _HTTP_NOT_FOUND:
                    return None
                if error.code < _HTTP_SERVER_ERROR or body is not None or attempt == self.attempts:
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
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted_certificates()))
        with opener.open(request, timeout=self.silence_seconds) as answer:
            data: bytes = answer.read()
        return data

    def _silent(self, error: Exception) -> EngineError:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return EngineError(
            f"{self.what} at {self.root} does not answer ({reason or type(error).__name__}). "
            "Is it running, and is this its address?"
        )

    def _refused(self, error: urllib.error.HTTPError, *, verb: str, path: str) -> EngineError | InvalidSettingError:
        said = _said(error.read().decode(errors="replace"))
        if error.code in _HTTP_UNAUTHORIZED:
            return InvalidSettingError(
                f"{self.what} at {self.root} does not let {self.user or 'an anonymous user'} in (HTTP {error.code}); "
                "give login and password in its connection. Kerberos is not spoken here"
            )
        return EngineError(f"{self.what} at {self.root} refused {verb} {path} (HTTP {error.code}): {said}")


def quoted(name: str) -> str:
    """Return a name as one part of a path or a query."""
    return quote(name, safe="")


def _was_not_received(error: Exception) -> bool:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return isinstance(reason, ConnectionRefusedError)


def _said(text: str) -> str:
    """Return the message in an error's body, which each manager has under another name."""
    try:
        document = json.loads(text)
    except ValueError:
        return text.strip()[:_SAID_CHARACTERS]
    if isinstance(document, dict):
        remote = document.get("RemoteException")
        for one in (remote if isinstance(remote, dict) else {}, document):
            for name in ("message", "msg"):
                if isinstance(one.get(name), str):
                    return str(one[name])[:_SAID_CHARACTERS]
    return text.strip()[:_SAID_CHARACTERS]
