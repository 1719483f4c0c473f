"""A manager's server at its worst: slow, broken off, endless, moved, or another program altogether."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from airflow_hudi_maint.core.engines import rest_client
from airflow_hudi_maint.core.engines.rest_client import RestClient, age
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from tests.unit.core.engines.rest_server import running_rest_server

SECRET = "hush-hush-hush"  # noqa: S105
JSON_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve bytes as they are: what comes in is thrown away, and ``answer`` writes to whoever connects."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def client(root: str, *, attempts: int = 1, answer_seconds: float = 60.0) -> RestClient:
    return RestClient(root=root, what="The cluster", attempts=attempts, answer_seconds=answer_seconds)


def test_an_answer_that_trickles_in_is_given_up() -> None:
    """Each byte comes in time, and the whole would take for ever."""

    def trickle(connection: socket.socket) -> None:
        connection.sendall(JSON_HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(0.05)

    started = time.monotonic()
    with (
        answering(trickle) as root,
        pytest.raises(EngineError, match=r"does not answer \(its answer takes longer than 0 s\)"),
    ):
        client(root, answer_seconds=0.3).get("/x")
    assert time.monotonic() - started < 5


def test_an_answer_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before it fills the memory of the worker."""
    monkeypatch.setattr(rest_client, "_MOST_BYTES", 1 << 20)

    def pour(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    with answering(pour) as root, pytest.raises(EngineError, match="answers with more than 1 MiB"):
        client(root).get("/x")


@pytest.mark.parametrize("code", [b"200 OK", b"500 Server Error"])
def test_an_answer_that_breaks_off_is_an_error_of_the_cluster(code: bytes) -> None:
    """Of ours, that is, which a retry may get over; also where the answer is itself an error."""

    def broken(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 " + code + b'\r\nContent-Length: 1000\r\n\r\n{"a": 1')

    with answering(broken) as root, pytest.raises(EngineError, match="The cluster at http"):
        client(root).get("/x")


@pytest.mark.parametrize("body", [b"[" * 100_000, b'"', b"\xff\xfe\x00", b"[1, 2]", b"null"])
def test_garbage_is_an_error_of_the_cluster(body: bytes) -> None:
    """Also such as Python's own reader of JSON gives up with an error of another kind."""

    def garbage(connection: socket.socket) -> None:
        connection.sendall(JSON_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    with answering(garbage) as root, pytest.raises(EngineError, match="does not answer with JSON"):
        client(root).get("/x")


def test_what_speaks_no_http_is_an_error_of_the_cluster() -> None:
    """As the port that Spark's own programs talk through."""
    with (
        answering(lambda connection: connection.sendall(b"\x00\x01\x02nonsense\r\n\r\n")) as root,
        pytest.raises(EngineError, match=r"The cluster at http.* does not answer"),
    ):
        client(root).get("/x")


@pytest.mark.parametrize(
    "root",
    ["ftp://m", "m:8088", "http://", "http://:8088", "http://m:80x", "http://m:99999", "http://a b:80", "http://u:p@m"],
)
def test_an_address_that_is_none_is_a_wrong_setting(root: str) -> None:
    """At once, and not after a few attempts to reach it; a password in it is not repeated."""
    with pytest.raises(InvalidSettingError, match="The address of The cluster must begin with http") as raised:
        client(root)
    assert "u:p" not in str(raised.value)


def test_a_change_follows_to_where_the_server_sends_it() -> None:
    """As a resource manager that stands by does: the same verb, the same body. Python itself would not."""
    with running_rest_server() as active, running_rest_server() as standby:
        active.routes["PUT /state"] = {"state": "KILLED"}
        standby.routes["PUT /state"] = (307, {})
        standby.sends = {"Location": f"{active.url}/state"}
        assert client(standby.url).send("PUT", "/state", body={"state": "KILLED"}) == {"state": "KILLED"}
        assert active.asked == [("PUT", "/state", {"state": "KILLED"})]


def test_a_change_is_not_turned_into_a_look() -> None:
    """Python makes a GET of a POST that is sent elsewhere, whose answer would be taken for that of the submission."""
    with running_rest_server() as gateway:
        gateway.routes["POST /create"] = (302, {})
        gateway.routes["GET /login"] = {"success": True, "submissionId": "driver-1"}
        gateway.sends = {"Location": f"{gateway.url}/login?back=there"}
        with pytest.raises(EngineError, match=r"refused POST /create \(HTTP 302\): it is at http://[\d.:]+/login\."):
            client(gateway.url).send("POST", "/create", body={})
        assert [one[0] for one in gateway.asked] == ["POST"]


def test_a_password_stays_with_the_server_it_is_for() -> None:
    """It does not follow a redirect to another one."""
    with running_rest_server() as other, running_rest_server() as server:
        other.routes["PUT /x"] = {}
        server.routes["PUT /x"] = (308, {})
        server.sends = {"Location": f"{other.url}/x"}
        RestClient(root=server.url, what="The cluster", user="ana", password=SECRET).send("PUT", "/x")
        assert "Authorization" in server.headers[0]
        assert "Authorization" not in other.headers[0]


def test_headers_are_not_shown() -> None:
    """A connection may have a token in them."""
    assert SECRET not in repr(RestClient(root="http://m", what="The cluster", headers={"Authorization": SECRET}))


def test_who_may_not_is_told_in_the_servers_words() -> None:
    """Another user's application is not the same as a login that is missing."""
    with running_rest_server() as server:
        server.routes["PUT /x"] = (403, {"RemoteException": {"message": "User ana cannot perform MODIFY_APP"}})
        with pytest.raises(InvalidSettingError, match=r"\(HTTP 403: User ana cannot perform MODIFY_APP\)"):
            client(server.url).send("PUT", "/x", body={})


def test_certificates_are_read_once_for_many_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job is asked after each second; reading them anew took a quarter of a core meanwhile."""
    read: list[int] = []
    trusted = rest_client.trusted_certificates
    monkeypatch.setattr(rest_client, "trusted_certificates", lambda: (read.append(1), trusted())[1])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/of-this-test")  # not what an earlier test may have read
    with running_rest_server() as server:
        server.routes["GET /x"] = {}
        for _ in range(5):
            client(server.url).get("/x")
        assert len(read) == 1
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere/else")
        client(server.url).get("/x")
    assert len(read) == 2


def test_ids_are_sorted_by_their_numbers() -> None:
    """They are padded to four digits and grow beyond; a text's order would put 9999 last for ever."""
    assert age("application_1700000000000_10000") > age("application_1700000000000_9999")
    assert age("app-20261130170000-10000") > age("app-20261130170000-9999")
