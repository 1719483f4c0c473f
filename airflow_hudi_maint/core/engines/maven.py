"""Download a jar from a Maven repository with Python's own HTTP, which trusts what this machine's Python trusts.

A Java from PyPI has a trust store of its own: behind a proxy that inspects TLS it refuses every address. Python knows
the machine's authorities, and the proxy, from the environment (SSL_CERT_FILE, HTTPS_PROXY, NO_PROXY and their like).
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import logging
import os
import re
import ssl
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

if TYPE_CHECKING:
    from collections.abc import Sequence

REPOSITORIES_VARIABLE = "AIRFLOW_HUDI_MAINT_REPOSITORIES"

_CERTIFICATE_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT")
# Where systems keep their authorities: a Python that was not built for this one looks elsewhere.
_SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_ATTEMPTS = 3
_PAUSE_SECONDS = 2.0
_SILENCE_SECONDS = 60.0
_PROGRESS_SECONDS = 5.0
_BLOCK = 1 << 20
_HTTP_NOT_FOUND = 404
_HTTP_SERVER_ERROR = 500

_log = logging.getLogger(__name__)

_ROOT_FOLDER = b"/maven2/"
"""How the address of the default repository ends, in the class that holds it."""


class DownloadError(Exception):
    """No repository gave the file; the message has a reason for each and no password."""


class _ChecksumError(OSError):
    """What came is not what the repository says it has."""


def repositories_from_environment() -> tuple[str, ...]:
    """Return the roots in AIRFLOW_HUDI_MAINT_REPOSITORIES, which are separated by commas."""
    return tuple(filter(None, (root.strip() for root in os.environ.get(REPOSITORIES_VARIABLE, "").split(","))))


def ivy_default_root(ivy_jar: Path) -> str | None:
    """Return the root that Ivy asks when it is told none: Maven Central. None when the jar does not say.

    It is a constant of a class and in no settings file.
    """
    try:
        with zipfile.ZipFile(ivy_jar) as archive:
            code = archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
    except (OSError, KeyError, zipfile.BadZipFile):
        return None
    found = re.search(b"".join((rb"https://", rb"[\x21-\x7e]+?", _ROOT_FOLDER)), code)
    return found[0].decode("ascii") if found else None


def download(path: str, *, roots: Sequence[str], into: Path) -> None:
    """Download the file at this path of the first repository that has it, and compare it with its SHA-1.

    ``into`` may be left with half a file when this fails.

    Raises:
        DownloadError: No repository gave it.
    """
    problems: list[str] = []
    for root in roots:
        shown, authorization = _without_password(root)
        url = f"{shown.rstrip('/')}/{path}"
        try:
            _download_with_patience(url, authorization=authorization, into=into)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problems.append(f"{url}: {_reason(error)}")
        else:
            return
    raise DownloadError("; ".join(problems) or "no repository to ask is known")


def _without_password(root: str) -> tuple[str, str | None]:
    """Split ``user:password@`` off an address: it becomes a header, and the rest can be shown."""
    parts = urlsplit(root)
    user, at, place = parts.netloc.rpartition("@")
    if not at:
        return root, None
    name, _, password = user.partition(":")
    token = base64.b64encode(f"{unquote(name)}:{unquote(password)}".encode()).decode("ascii")
    return urlunsplit(parts._replace(netloc=place)), f"Basic {token}"


def _download_with_patience(url: str, *, authorization: str | None, into: Path) -> None:
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise ValueError("the address must begin with https://, http:// or file://")
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trusted_certificates()))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _download_once(opener, url, authorization=authorization, into=into)
        except (OSError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS or not _may_pass(error):
                raise
            _log.info("%s: %s; trying again", url, _reason(error))
            time.sleep(_PAUSE_SECONDS * attempt)
        else:
            return


def _download_once(opener: urllib.request.OpenerDirector, url: str, *, authorization: str | None, into: Path) -> None:
    expected = _checksum(opener, f"{url}.sha1", authorization=authorization)
    digest = hashlib.sha1(usedforsecurity=False)
    with _open(opener, url, authorization=authorization) as answer, into.open("wb") as file:
        total = int(answer.headers.get("Content-Length") or 0)
        _log.info("Downloading %s%s", url, f" ({_megabytes(total)} MB)" if total else "")
        done, said = 0, time.monotonic()
        while block := answer.read(_BLOCK):
            file.write(block)
            digest.update(block)
            done += len(block)
            if time.monotonic() - said >= _PROGRESS_SECONDS:
                said = time.monotonic()
                _log.info("%s of %s MB", _megabytes(done), _megabytes(total) if total else "?")
    if total and done != total:
        raise _ChecksumError(f"{done} of {total} bytes came")
    if expected is not None and digest.hexdigest() != expected:
        raise _ChecksumError(f"its SHA-1 is {digest.hexdigest()} and should be {expected}")


def _checksum(opener: urllib.request.OpenerDirector, url: str, *, authorization: str | None) -> str | None:
    """Return the SHA-1 that the repository has beside the file; None when it has none, as a folder of jars may."""
    try:
        with _open(opener, url, authorization=authorization) as answer:
            text = answer.read(4096).decode("ascii", errors="replace")
    except urllib.error.HTTPError as error:
        if error.code == _HTTP_NOT_FOUND:
            return None
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):
            return None
        raise
    found = re.search(r"\b[0-9a-f]{40}\b", text.lower())
    return found[0] if found else None


def _open(opener: urllib.request.OpenerDirector, url: str, *, authorization: str | None) -> urllib.response.addinfourl:
    request = urllib.request.Request(url, headers={"User-Agent": "airflow-hudi-maint"})  # noqa: S310 - see the check
    if authorization:
        request.add_unredirected_header("Authorization", authorization)  # Another host must not see it.
    answer: urllib.response.addinfourl = opener.open(request, timeout=_SILENCE_SECONDS)
    return answer


def trusted_certificates() -> ssl.SSLContext:
    """Return Python's default trust, with the bundles that are given to other programs of this machine."""
    context = ssl.create_default_context()
    # Python 3.13 refuses authorities that lack extensions no one else asks for, as those of many proxies do.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    bundles = [os.environ.get(name) for name in _CERTIFICATE_VARIABLES]
    if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
        bundles += _SYSTEM_BUNDLES
    for bundle in filter(None, bundles):
        with suppress(OSError):  # One that is gone or holds nothing: what the others say stands.
            if Path(bundle).is_dir():
                context.load_verify_locations(capath=bundle)
            else:
                context.load_verify_locations(cafile=bundle)
    return context


def _may_pass(error: OSError | http.client.HTTPException) -> bool:
    """Tell whether another attempt may go better: not for a file that is not there or a certificate without trust."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= _HTTP_SERVER_ERROR
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return not isinstance(reason, ssl.SSLCertVerificationError | FileNotFoundError)


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        return str(error.reason)
    return str(error) or type(error).__name__


def _megabytes(count: int) -> int:
    return round(count / 1e6)
