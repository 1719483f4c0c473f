"""Livy asked by this package's own client and by the hook of Airflow's provider: the same answers, read alike."""

from __future__ import annotations

import base64
import importlib
import json
import socket
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_hudi_maint.core.engines.livy import LivyCluster, LivyRest, Rest
from airflow_hudi_maint.core.engines.rest_client import RestClient
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError
from airflow_hudi_maint.core.model.job import JobStatus
from airflow_hudi_maint.hooks import livy as livy_module
from airflow_hudi_maint.hooks.cluster_connection import LivyConnection
from airflow_hudi_maint.hooks.livy import PROVIDER, ProviderRest, has_provider, livy_rest
from tests.unit.core.engines.rest_server import RestServer, running_rest_server
from tests.unit.core.engines.test_maven import own_certificate

SECRET = "hush-hush-hush"  # noqa: S105

needs_provider = pytest.mark.skipif(not has_provider(), reason="Airflow's Livy provider is not installed: extra [livy]")


@pytest.fixture
def server() -> Iterator[RestServer]:
    with running_rest_server() as running:
        yield running


def connection(server: RestServer, **fields: Any) -> LivyConnection:
    extra = fields.pop("extra", {})
    host, _, port = server.url.removeprefix("http://").partition(":")
    given = {"host": host, "port": int(port), **fields}
    return LivyConnection.of(Connection(conn_id="livy", conn_type="livy", extra=json.dumps(extra), **given))


def own(read: LivyConnection) -> Rest:
    return RestClient(root=read.root, what="Livy", user=read.user, password=read.password, headers=read.headers)


CLIENTS = [
    pytest.param(own, id="own client"),
    pytest.param(lambda read: ProviderRest(connection=read), id="provider", marks=needs_provider),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_livy_is_asked_with_what_its_connection_says(server: RestServer, client: Any) -> None:
    """Who asks, the header that Livy's filter wants, the user's own headers, and JSON."""
    server.routes["POST /batches"] = {"id": 7, "state": "starting"}
    rest = client(connection(server, login="ana", password=SECRET, extra={"X-Tenant": "lake"}))
    assert rest.send("POST", "/batches", body={"file": "f"}) == {"id": 7, "state": "starting"}
    assert server.asked == [("POST", "/batches", {"file": "f"})]
    sent = server.headers[0]
    assert sent["Authorization"] == "Basic " + base64.b64encode(f"ana:{SECRET}".encode()).decode()
    assert (sent["X-Requested-By"], sent["X-Tenant"]) == ("airflow", "lake")
    assert sent["Content-Type"].startswith("application/json")
    assert SECRET not in repr(rest)


@pytest.mark.parametrize("client", CLIENTS)
def test_batches_are_found_seen_and_ended(server: RestServer, client: Any) -> None:
    """By name over pages, by state, by log; one that Livy has forgotten is lost."""
    sessions = [{"id": n, "name": f"n{n}", "state": "running"} for n in range(120)]

    def page(_: Any) -> Any:
        query = dict(one.split("=") for one in server.asked[-1][1].partition("?")[2].split("&"))
        start, size = int(query["from"]), int(query["size"])
        return {"sessions": sessions[start : start + size]}

    server.routes["GET /batches"] = page
    server.routes["GET /batches/7"] = {"id": 7, "state": "success"}
    server.routes["GET /batches/7/log"] = {"log": ["a", "b"]}
    server.routes["DELETE /batches/7"] = {"msg": "deleted"}
    cluster = LivyCluster(client=LivyRest(rest=client(connection(server))))
    assert (cluster.find("n113"), cluster.find("nope")) == ("113", None)
    assert [cluster.state("7"), cluster.state("8")] == [JobStatus.SUCCEEDED, JobStatus.LOST]
    assert cluster.log_tail("7", lines=2) == "a\nb"
    cluster.kill("7")
    assert server.asked[-1][:2] == ("DELETE", "/batches/7")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_gateways_path_stays_in_front(server: RestServer, client: Any) -> None:
    """Livy behind a gateway has its address as a whole in the host."""
    server.routes["GET /gateway/livy/batches/7"] = {"id": 7}
    assert client(connection(server, host=f"{server.url}/gateway/livy", port=None)).get("/batches/7") == {"id": 7}


@pytest.mark.parametrize("client", CLIENTS)
def test_what_livy_refuses_is_said_in_its_words(server: RestServer, client: Any) -> None:
    """And who is not let in is told where to say who asks; nobody sees the password."""
    server.routes["POST /batches"] = (400, {"msg": "requirement failed: queue nope is unknown"})
    rest = client(connection(server, login="ana", password=SECRET))
    with pytest.raises(EngineError, match=r"refused POST /batches \(HTTP 400\): requirement failed: queue nope"):
        rest.send("POST", "/batches", body={})
    server.routes["GET /batches/7"] = (401, "<html>")
    with pytest.raises(InvalidSettingError, match="does not let ana in") as raised:
        rest.get("/batches/7")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_hiccup_is_survived_and_a_batch_is_submitted_once(server: RestServer, client: Any) -> None:
    """A look is repeated after an error of the server; a submission that may have been received is not."""
    answers = iter([(503, {}), (200, {"id": 7})])
    server.routes["GET /batches/7"] = lambda _: next(answers)
    server.routes["POST /batches"] = (503, {"message": "busy"})
    rest = client(connection(server))
    assert rest.get("/batches/7") == {"id": 7}
    with pytest.raises(EngineError, match="HTTP 503"):
        rest.send("POST", "/batches", body={})
    assert len([one for one in server.asked if one[0] == "POST"]) == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_another_servers_address_is_noticed(server: RestServer, client: Any) -> None:
    """A page instead of JSON."""
    server.routes["GET /batches"] = "<html>Welcome</html>"
    with pytest.raises(EngineError, match="Is it another server's address"):
        client(connection(server)).get("/batches")


@needs_provider
def test_a_livy_that_is_down_is_said_to_be() -> None:
    """A submission is sent again while nobody listens: it was certainly not received."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    read = LivyConnection(conn_id="livy", root=f"http://127.0.0.1:{port}")
    with pytest.raises(EngineError, match=rf"Livy at http://127\.0\.0\.1:{port} does not answer"):
        ProviderRest(connection=read, attempts=2).send("POST", "/batches", body={})


@needs_provider
def test_a_livy_that_says_nothing_is_given_up_after_the_connections_time() -> None:
    """The provider's hook alone would wait for ever; nothing is submitted twice meanwhile."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        read = LivyConnection(conn_id="livy", root=f"http://127.0.0.1:{port}", options={"timeout": 0.2})
        with pytest.raises(EngineError, match=r"does not answer .*[Tt]imed out"):
            ProviderRest(connection=read).send("POST", "/batches", body={})


@needs_provider
def test_what_the_provider_understands_is_no_header(server: RestServer) -> None:
    """Certificates, proxies and times go to its hook; a proxy is really asked."""
    server.routes["GET http://livy.invalid:8998/batches/7"] = {"id": 7}
    options = {"proxies": {"http": server.url}, "verify": False, "timeout": 5}
    read = connection(server, host="livy.invalid", port=None, extra=options)
    assert read.headers == {"X-Requested-By": "airflow"}
    assert ProviderRest(connection=read).get("/batches/7") == {"id": 7}
    assert not {"verify", "proxies", "timeout"} & {name.lower() for name in server.headers[0]}


@needs_provider
def test_certificates_of_the_connection_are_the_ones_that_count(tmp_path: Path) -> None:
    """An authority of the user's own in ``verify``, and who asks in ``cert``; JSON has that as a list."""
    key, certificate = own_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificate)
    asks = {"verify": str(certificate), "cert": [str(certificate), str(key)]}
    with running_rest_server(tls=tls) as server:
        server.routes["GET /batches/7"] = {"id": 7}
        asked = LivyConnection(conn_id="livy", root=server.url, options=asks)
        assert ProviderRest(connection=asked).get("/batches/7") == {"id": 7}
        for missing in asks:
            less = LivyConnection(
                conn_id="livy", root=server.url, options={name: asks[name] for name in asks if name != missing}
            )
            with pytest.raises(EngineError, match="does not answer"):
                ProviderRest(connection=less, attempts=1).get("/batches/7")


class Ticket:
    """Signs a request with a ticket, as Kerberos does; made with login and password where there are some."""

    def __init__(self, *who: str) -> None:
        self.who = who

    def __call__(self, request: Any) -> Any:
        request.headers["Authorization"] = f"Ticket of {self.who or 'this machine'}"
        return request


@needs_provider
def test_another_way_to_sign_in_is_taken_from_its_import_path(server: RestServer) -> None:
    """With what the connection says of who asks, and without."""
    server.routes["GET /batches/7"] = {"id": 7}
    path = f"{__name__}.Ticket"
    for fields in ({}, {"login": "ana", "password": SECRET}):
        assert livy_rest(connection(server, **fields), auth_type=path).get("/batches/7") == {"id": 7}
    said = [one["Authorization"] for one in server.headers]
    assert said == ["Ticket of this machine", f"Ticket of ('ana', '{SECRET}')"]


@needs_provider
@pytest.mark.parametrize(
    ("path", "message"),
    [("requests_nope.Auth", "No module named"), ("HTTPKerberosAuth", "Empty module"), ("json.nope", "no attribute")],
)
def test_a_way_to_sign_in_that_is_not_there_is_refused(server: RestServer, path: str, message: str) -> None:
    """By its path, before anything is submitted."""
    with pytest.raises(InvalidSettingError, match=f"livy_auth_type='{path}' cannot be imported: .*{message}"):
        livy_rest(connection(server), auth_type=path)


@needs_provider
def test_the_provider_is_taken_where_it_is(server: RestServer) -> None:
    """Whoever installed it expects what it does."""
    assert isinstance(livy_rest(connection(server)), ProviderRest)


def test_without_the_provider_the_own_client_asks(server: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it does not understand is refused by name, without a value."""
    monkeypatch.setattr(livy_module, "has_provider", lambda: False)
    assert isinstance(livy_rest(connection(server, extra={"X-Tenant": "lake"})), RestClient)
    read = connection(server, extra={"verify": False, "proxies": {"http": f"http://me:{SECRET}@proxy"}})
    assert SECRET in read.secrets()
    wanted = r"^proxies, verify, livy_auth_type of the connection 'livy' to Livy .*\[livy\]"
    with pytest.raises(InvalidSettingError, match=wanted) as said:
        livy_rest(read, auth_type="requests_kerberos.HTTPKerberosAuth")
    assert SECRET not in f"{said.value}{read!r}"


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (ModuleNotFoundError("no", name="airflow.providers.apache"), False),
        (ModuleNotFoundError("no", name=PROVIDER), False),
        (ModuleNotFoundError("no module named aiohttp", name="aiohttp"), None),
        (ImportError("cannot import name X"), None),
    ],
)
def test_a_provider_that_is_broken_is_no_missing_one(
    monkeypatch: pytest.MonkeyPatch, error: ImportError, *, found: bool | None
) -> None:
    """Falling back in silence would leave out certificates that its user has set."""

    def refuse(_: str) -> None:
        raise error

    monkeypatch.delitem(sys.modules, PROVIDER, raising=False)
    monkeypatch.setattr(importlib, "import_module", refuse)
    if found is None:
        with pytest.raises(InvalidSettingError, match="is installed and cannot be imported"):
            has_provider()
    else:
        assert has_provider() is found
