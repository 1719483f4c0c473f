"""A small HTTP server that answers as a test says, and keeps what it was asked."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Route = Callable[[dict[str, Any]], Any]


@dataclass
class RestServer:
    """Answers by verb and path without its query: with JSON, or with (code, JSON). What is not known is a 404."""

    url: str = ""
    routes: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    sends: dict[str, str] = field(default_factory=dict)
    """More headers of each answer."""

    def answer(self, verb: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((verb, path, body))
        route = self.routes.get(f"{verb} {path.partition('?')[0]}", (404, {"message": "not here"}))
        found = route(body) if callable(route) else route
        return found if isinstance(found, tuple) else (200, found)


@contextmanager
def running_rest_server(*, tls: ssl.SSLContext | None = None) -> Iterator[RestServer]:
    """Serve on a free port of this machine, encrypted where a context says with which certificate."""
    server = RestServer()

    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(length)
            server.headers.append(dict(self.headers.items()))
            code, document = server.answer(self.command, self.path, json.loads(data) if data else None)
            text = document if isinstance(document, str) else json.dumps(document)
            self.send_response(code)
            self.send_header("Content-Length", str(len(text.encode())))
            for name, value in server.sends.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 names of the base class

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True)
    server.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
