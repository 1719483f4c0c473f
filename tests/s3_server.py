"""An S3 server for tests and benchmarks: moto in a process of its own, on a free port of this machine.

What the server was asked is known from the server, not from our own counters: :meth:`S3Server.asked` has every request
with its verb, key, query, range and the bytes that went out. Faults can be ordered, as S3 deals them out itself, and a
delay for each request, as a network has one.

As a program: ``python -m tests.s3_server``; it says its port and serves until its standard input ends.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_CONTROL = "/_control"
_ROOT = Path(__file__).resolve().parent.parent
_START_SECONDS = 60.0
_OF_THE_SERVER = ("date", "server")
"""Headers that werkzeug sends as moto does: twice, a strict client refuses the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as the server saw it; ``sent_bytes`` is the length of the body of the answer.

    ``key_id`` is the access key that it was signed with, empty without one; ``creates`` says whether it was a put that
    must not replace anything.
    """

    verb: str
    path: str
    query: str
    range: str | None
    status: int
    sent_bytes: int
    key_id: str
    creates: bool

    @property
    def is_listing(self) -> bool:
        """Whether this is one page of a listing."""
        return self.verb == "GET" and "list-type=2" in self.query


class S3Server:
    """A running server. Credentials are checked by nobody, but a client has to have some."""

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def storage_options(self) -> dict[str, object]:
        """What fsspec needs to open ``s3://`` URLs here."""
        return {
            "key": "tests",
            "secret": "tests-secret",
            "endpoint_url": self.url,
            "client_kwargs": {"region_name": "us-east-1"},
        }

    def new_bucket(self) -> str:
        """Make an empty bucket of a name that nobody has and return it."""
        name = f"lake-{uuid.uuid4().hex[:12]}"
        self._ask("PUT", f"/{name}")
        return name

    def put(self, path: str, data: bytes = b"") -> None:
        """Put an object at ``bucket/key``; the key is percent-encoded by the caller where it must be."""
        self._ask("PUT", f"/{path}", data)

    def put_empty(self, bucket: str, keys: Iterable[str]) -> None:
        """Put many empty objects at once."""
        self._ask("POST", _CONTROL, json.dumps({"bucket": bucket, "keys": list(keys)}).encode())

    def put_folder(self, bucket: str, folder: Path, *, prefix: str) -> None:
        """Put a local folder's files below ``prefix``, with their times of modification to the second, at once."""
        order = {"bucket": bucket, "folder": str(folder), "prefix": prefix}
        self._ask("POST", _CONTROL, json.dumps(order).encode())

    def asked(self) -> list[Asked]:
        """Every request since the server started or was last told to :meth:`forget`."""
        return [Asked(**one) for one in json.loads(self._ask("GET", _CONTROL))]

    def forget(self) -> None:
        """Forget what was asked, and the faults and the delay that were ordered."""
        self._ask("DELETE", _CONTROL)

    def fail(self, *, status: int, code: str, times: int = 1, within: str = "", verb: str = "") -> None:
        """Answer the next ``times`` requests with this error of S3's: those whose path or query holds ``within``.

        ``status`` 0 closes the connection without an answer.
        """
        order = {"status": status, "code": code, "times": times, "within": within, "verb": verb}
        self._ask("POST", _CONTROL, json.dumps({"fault": order}).encode())

    def delay(self, seconds: float) -> None:
        """Wait before each answer."""
        self._ask("POST", _CONTROL, json.dumps({"delay": seconds}).encode())

    def _ask(self, verb: str, path: str, data: bytes | None = None) -> bytes:
        request = urllib.request.Request(f"{self.url}{path}", data=data, method=verb)  # noqa: S310 our own http URL
        request.add_header("Authorization", "AWS4-HMAC-SHA256 Credential=tests/20260101/us-east-1/s3/aws4_request")
        # urllib's own type is that of a form, whose body the server takes apart: the object would be empty.
        request.add_header("Content-Type", "application/octet-stream")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return bytes(answer.read())


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Start a server and end it with the block: some two seconds, nearly all of them moto's import."""
    command = [sys.executable, "-m", "tests.s3_server"]
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        watchdog = threading.Timer(_START_SECONDS, process.kill)
        watchdog.start()
        try:
            port = process.stdout.readline().strip()
            watchdog.cancel()
            if not port:
                msg = f"the S3 server did not start (exit code {process.wait()}); run {' '.join(command)} to see why"
                raise RuntimeError(msg)
            yield S3Server(f"http://127.0.0.1:{port}")
        finally:
            watchdog.cancel()
            process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


class _Watched:
    """The server's application, with a record of what it was asked and the faults that were ordered."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()
        self._asked: list[Asked] = []
        self._faults: list[dict[str, Any]] = []
        self._delay = 0.0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"] == _CONTROL:
            return self._control(environ, start_response)
        time.sleep(self._delay)
        path = environ.get("RAW_URI", environ["PATH_INFO"]).partition("?")[0]
        query = environ["QUERY_STRING"]
        fault = self._next_fault(environ["REQUEST_METHOD"], f"{path}?{query}")
        statuses: list[int] = []

        def start(status: str, headers: Sequence[tuple[str, str]], *rest: Any) -> Any:
            statuses.append(int(status[:3]))
            once = [(name, value) for name, value in headers if name.lower() not in _OF_THE_SERVER]
            return start_response(status, once, *rest)

        if fault is None:
            answer = self._application(environ, start)
            body = b"".join(answer)
            if hasattr(answer, "close"):
                answer.close()
        else:
            body = _failed(fault, environ, start)
        asked = Asked(
            verb=environ["REQUEST_METHOD"],
            path=path,
            query=query,
            range=environ.get("HTTP_RANGE"),
            status=statuses[0],
            sent_bytes=len(body),
            key_id=environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0],
            creates=environ.get("HTTP_IF_NONE_MATCH") == "*",
        )
        with self._lock:
            self._asked.append(asked)
        return [body]

    def _next_fault(self, verb: str, target: str) -> dict[str, Any] | None:
        with self._lock:
            for fault in self._faults:
                if fault["times"] > 0 and fault["within"] in target and fault["verb"] in ("", verb):
                    fault["times"] -= 1
                    return fault
        return None

    def _control(self, environ: dict[str, Any], start_response: Any) -> list[bytes]:
        verb = environ["REQUEST_METHOD"]
        body = b""
        with self._lock:
            if verb == "GET":
                body = json.dumps([asdict(one) for one in self._asked]).encode()
            elif verb == "DELETE":
                self._asked.clear()
                self._faults.clear()
                self._delay = 0.0
            else:
                order = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
                self._delay = order.get("delay", self._delay)
                self._faults.extend([order["fault"]] if "fault" in order else [])
                _put_all(order)
        start_response("200 OK", [("Content-Length", str(len(body)))])
        return [body]


def _put_all(order: dict[str, Any]) -> None:
    from moto.s3.models import s3_backends

    store = s3_backends["123456789012"]["aws"]  # moto's only account
    for key in order.get("keys", ()):
        store.put_object(order["bucket"], key, b"")
    folder = Path(order["folder"]) if "folder" in order else None
    for path in sorted(folder.rglob("*")) if folder else ():
        if path.is_file() and folder:
            key = f"{order['prefix']}/{path.relative_to(folder).as_posix()}"
            put = store.put_object(order["bucket"], key, path.read_bytes())
            put.last_modified = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC).replace(tzinfo=None)


def _failed(fault: dict[str, Any], environ: dict[str, Any], start_response: Any) -> bytes:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"].read(length)  # unread, it would be taken for the next request
    if not fault["status"]:
        start_response("503 Gone", [("Connection", "close")])
        environ["werkzeug.socket"].close()
        return b""
    body = f"<Error><Code>{fault['code']}</Code><Message>ordered by a test</Message></Error>".encode()
    if environ["REQUEST_METHOD"] == "HEAD":
        body = b""
    headers = [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
    start_response(f"{fault['status']} {fault['code']}", headers)
    return body


def _serve() -> None:
    import logging

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    application = _Watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()  # ends with whoever started this process, however that ended


if __name__ == "__main__":
    _serve()
