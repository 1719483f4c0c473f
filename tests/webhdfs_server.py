"""A small name node for tests: the part of the WebHDFS REST protocol that storage uses, over a tree in memory.

It is no Hadoop: it says what the protocol's documentation says a name node (or, with ``is_gateway``, HttpFS) answers.
Data goes through a redirect, as with data nodes, and renaming over a file fails unless it is asked for.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

_ROOT = "/webhdfs/v1"


@dataclass(kw_only=True)
class NameNode:
    """What the server holds. ``files`` are content and time of modification in milliseconds, by path."""

    token: str = "delegation-token-of-tests"  # noqa: S105 no secret
    is_gateway: bool = False
    """A gateway knows no rename over a file."""
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    folders: set[str] = field(default_factory=lambda: {"/"})
    asked: list[str] = field(default_factory=list)
    """Operation and path of each request, without data transfers."""
    failures: list[tuple[int, str]] = field(default_factory=list)
    """HTTP status and exception of the next answers."""
    refused_operation: str | None = None
    lock: threading.RLock = field(default_factory=threading.RLock)

    def make_folders(self, path: str) -> None:
        while path not in self.folders:
            self.folders.add(path)
            path = path.rpartition("/")[0] or "/"

    def put(self, path: str, data: bytes) -> None:
        self.make_folders(path.rpartition("/")[0] or "/")
        self.files[path] = (data, int(time.time() * 1000))

    def status(self, path: str, *, suffix: str = "") -> dict[str, object]:
        if path in self.files:
            data, modified = self.files[path]
            return {"pathSuffix": suffix, "type": "FILE", "length": len(data), "modificationTime": modified}
        if path in self.folders:
            return {"pathSuffix": suffix, "type": "DIRECTORY", "length": 0, "modificationTime": 0}
        raise FileNotFoundError(path)

    def children(self, path: str) -> list[dict[str, object]]:
        if path in self.files:  # a file lists as itself, without a name
            return [self.status(path)]
        self.status(path)
        inside = [one for one in (*self.files, *self.folders) if one != "/" and (one.rpartition("/")[0] or "/") == path]
        return [self.status(one, suffix=one.rpartition("/")[2]) for one in inside]

    def rename(self, source: str, target: str, *, overwrites: bool) -> bool | None:
        self.status(source)
        if target in self.files and (not overwrites or self.is_gateway):
            return False
        self.files[target] = self.files.pop(source)
        return None if overwrites and not self.is_gateway else True  # the newer call answers without a body

    def delete(self, path: str) -> bool:
        return self.files.pop(path, None) is not None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 64 * 1024  # headers and body in one packet: apart, each answer would wait for an acknowledgement
    server: _Server

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_DELETE(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name of the base class
        """Say nothing."""

    def _answer(self) -> None:
        node = self.server.node
        url = urlsplit(self.path)
        options = dict(parse_qsl(url.query))
        path = unquote(url.path.removeprefix(_ROOT)).rstrip("/") or "/"
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with node.lock:
            if "data" not in options:
                node.asked.append(f"{options['op']} {path}")
                if node.failures:
                    return self._refuse(*node.failures.pop(0), "ordered by a test")
                if options["op"] == node.refused_operation:
                    return self._refuse(403, "SafeModeException", "ordered by a test")
                if options.get("delegation") != node.token:
                    return self._refuse(403, "AccessControlException", "this token is not known here")
            try:
                return self._perform(path, options, body)
            except FileNotFoundError as error:
                return self._refuse(404, "FileNotFoundException", f"File does not exist: {error}")

    def _perform(self, path: str, options: dict[str, str], body: bytes) -> None:  # noqa: PLR0911 one for each operation
        node = self.server.node
        operation = options["op"]
        if operation in ("OPEN", "CREATE", "APPEND") and "data" not in options:
            if operation == "OPEN":
                node.status(path)
            return self._send(307, b"", location=f"http://{self.headers['Host']}{self.path}&data=true")
        if operation == "OPEN":
            offset = int(options.get("offset", 0))
            data = node.files[path][0]
            return self._send(200, data[offset : offset + int(options.get("length", len(data)))])
        if operation in ("CREATE", "APPEND"):
            node.put(path, (node.files[path][0] if operation == "APPEND" else b"") + body)
            return self._send(201 if operation == "CREATE" else 200, b"")
        if operation == "LISTSTATUS":
            return self._json({"FileStatuses": {"FileStatus": node.children(path)}})
        if operation == "GETFILESTATUS":
            return self._json({"FileStatus": node.status(path)})
        if operation == "MKDIRS":
            node.make_folders(path)
            return self._json({"boolean": True})
        if operation == "RENAME":
            overwrites = options.get("renameoptions") == "OVERWRITE"
            done = node.rename(path, options["destination"], overwrites=overwrites)
            return self._send(200, b"") if done is None else self._json({"boolean": done})
        if operation == "DELETE":
            return self._json({"boolean": node.delete(path)})
        return self._refuse(400, "UnsupportedOperationException", operation)

    def _refuse(self, status: int, exception: str, message: str) -> None:
        self._json({"RemoteException": {"exception": exception, "message": message}}, status=status)

    def _json(self, value: object, *, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode())

    def _send(self, status: int, body: bytes, *, location: str | None = None) -> None:
        self.send_response(status)
        if location is not None:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, node: NameNode) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.node = node


@contextmanager
def running_name_node(node: NameNode) -> Iterator[str]:
    """Serve ``node`` and yield the URL of its root for fsspec."""
    with _Server(node) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield f"webhdfs://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
