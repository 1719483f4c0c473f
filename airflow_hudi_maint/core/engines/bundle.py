"""Hudi's bundle: which one, where its jar is, and which tables it may touch.

Run as ``python -m airflow_hudi_maint.core.engines.bundle [COORDINATE]`` it fetches the jar into the cache and prints
its path.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from airflow_hudi_maint.core.engines import maven
from airflow_hudi_maint.core.engines.java import JavaInstallation, find_java
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation, find_pyspark
from airflow_hudi_maint.core.errors import BundleError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DEFAULT_BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
CACHE_VARIABLE = "AIRFLOW_HUDI_MAINT_CACHE"

Version = tuple[int, int, int]

# Which table versions a release writes without upgrading them, by (major, minor). 1.0 refuses to run a procedure on a
# version 6 table ("Table version (SIX) and Writer version (EIGHT) do not match"); its DataFrame writer upgrades one.
_WRITES: dict[tuple[int, int], tuple[int, ...]] = {
    (0, 14): (6,),
    (0, 15): (6,),
    (1, 0): (8,),
    (1, 1): (6, 8, 9),
    (1, 2): (6, 8, 9),
}
_COORDINATE = re.compile(r"(?P<group>[\w.-]+):(?P<artifact>[\w.-]+):(?P<version>[\w.-]+)")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_RESOLVE_SECONDS = 900.0
_IVY_LINES = 12

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinate:
    """A Maven coordinate."""

    group: str
    artifact: str
    version: str

    @property
    def jar_name(self) -> str:
        """The file name of its jar, in a repository and in our cache."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Where a repository has its jar, below the root."""
        return "/".join([*self.group.split("."), self.artifact, self.version, self.jar_name])

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def default_cache_dir() -> Path:
    """Return our cache: AIRFLOW_HUDI_MAINT_CACHE, or ``airflow-hudi-maint`` in the user's cache folder."""
    given = os.environ.get(CACHE_VARIABLE)
    return Path(given) if given else Path.home() / ".cache" / "airflow-hudi-maint"


def resolve_bundle(
    bundle: str,
    *,
    java: JavaInstallation,
    pyspark: PysparkInstallation,
    cache_dir: Path | None = None,
    repositories: Sequence[str] = (),
) -> Path:
    """Return the jar of a bundle: a path is taken as it is, a coordinate is fetched once into the cache.

    ``repositories`` are roots of Maven repositories to ask, in this order, instead of those in the environment variable
    AIRFLOW_HUDI_MAINT_REPOSITORIES or else Maven Central. Python downloads; where it cannot, Spark's own Ivy is tried.
    Safe to run at once in several processes: one fetches, the others wait, and no reader ever sees half a jar.

    Raises:
        BundleError: The jar is not there, or does not resolve; the message ends with Ivy's last lines.
    """
    coordinate = parse_coordinate(bundle)
    if coordinate is None:
        jar = Path(bundle).expanduser()
        if not jar.is_file():
            raise BundleError(
                f"Bundle {bundle!r} is neither a jar that exists nor a coordinate like {DEFAULT_BUNDLE!r}."
            )
        return jar.resolve()
    jars = (cache_dir or default_cache_dir()) / "jars"
    jar = jars / coordinate.jar_name
    if jar.is_file():
        return jar
    jars.mkdir(parents=True, exist_ok=True)
    with _lock(jars / f".{coordinate.jar_name}.lock"):
        if not jar.is_file():
            roots = tuple(repositories) or maven.repositories_from_environment()
            _fetch(coordinate, into=jar, java=java, pyspark=pyspark, repositories=roots)
    return jar


def parse_coordinate(bundle: str) -> Coordinate | None:
    """Return the coordinate that ``bundle`` is, or None for a path."""
    found = _COORDINATE.fullmatch(bundle)
    return Coordinate(**found.groupdict()) if found else None


def bundle_version(bundle: str) -> Version:
    """Return the Hudi release of a bundle: from its coordinate, its file name, or what the jar says of itself.

    Raises:
        BundleError: None of them says it.
    """
    coordinate = parse_coordinate(bundle)
    text = coordinate.version if coordinate else _version_of_jar(Path(bundle).expanduser())
    found = _VERSION.match(text)
    if not found:
        raise BundleError(f"Bundle {bundle!r} does not say which release of Hudi it is; name it by a Maven coordinate.")
    return int(found[1]), int(found[2]), int(found[3])


def check_bundle(bundle: str, *, table_version: int) -> None:
    """Refuse a bundle that cannot write a table of this version, or that would upgrade the table by writing.

    Raises:
        BundleError: The message names the releases that could.
    """
    version = bundle_version(bundle)
    writes = _WRITES.get(version[:2])
    if writes is not None and table_version in writes:
        return
    able = ", ".join(f"{major}.{minor}" for (major, minor), those in _WRITES.items() if table_version in those)
    release = ".".join(map(str, version))
    known = "is not a release that was tried" if writes is None else f"writes table versions {_listed(writes)}"
    raise BundleError(
        f"Bundle {bundle!r} cannot maintain a table of version {table_version} as it is: Hudi {release} {known}. "
        + (f"Use a bundle of Hudi {able}." if able else "No release of Hudi that was tried can.")
    )


def check_spark(bundle: str, *, spark_release: str) -> None:
    """Refuse a bundle built for another Spark; a name that does not say for which is let through."""
    coordinate = parse_coordinate(bundle)
    name = coordinate.artifact if coordinate else Path(bundle).name
    found = re.search(r"spark(\d+\.\d+)-bundle", name)
    if found and found[1] != spark_release:
        raise BundleError(
            f"Bundle {bundle!r} is for Spark {found[1]}, and pyspark is {spark_release}: "
            f"install pyspark {found[1]} or choose a bundle for {spark_release}."
        )


def _listed(versions: Sequence[int]) -> str:
    return ", ".join(map(str, versions))


def _version_of_jar(jar: Path) -> str:
    found = re.search(r"-(\d+\.\d+\.\d+)[^/]*\.jar$", jar.name)
    if found:
        return found[1]
    try:
        with zipfile.ZipFile(jar) as archive:
            return _pom_version(archive)
    except (OSError, zipfile.BadZipFile) as error:
        raise BundleError(f"Bundle {str(jar)!r} cannot be read as a jar: {error}") from error


def _pom_version(archive: zipfile.ZipFile) -> str:
    """Return the version in the bundle's own pom.properties; a bundle holds those of what it shades, too."""
    pattern = re.compile(r"META-INF/maven/org\.apache\.hudi/hudi-spark[^/]*bundle[^/]*/pom\.properties")
    for name in archive.namelist():
        if pattern.fullmatch(name):
            found = re.search(r"^version=(.+)$", archive.read(name).decode(), re.MULTILINE)
            return found[1].strip() if found else ""
    return ""


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold a lock that the system drops when the process dies."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _log.info("Another process fetches the Hudi bundle; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(
    coordinate: Coordinate,
    *,
    into: Path,
    java: JavaInstallation,
    pyspark: PysparkInstallation,
    repositories: Sequence[str],
) -> None:
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".fetch-") as folder:
        fetched = Path(folder) / coordinate.jar_name
        try:
            _download(coordinate, into=fetched, pyspark=pyspark, repositories=repositories)
        except maven.DownloadError as error:
            _log.info("%s was not downloaded (%s); trying Ivy", coordinate, error)
            fetched.unlink(missing_ok=True)
            _fetch_with_ivy(coordinate, into=fetched, java=java, pyspark=pyspark, repositories=repositories, why=error)
        fetched.replace(into)


def _download(coordinate: Coordinate, *, into: Path, pyspark: PysparkInstallation, repositories: Sequence[str]) -> None:
    roots = list(repositories)
    if not roots:
        roots = [root for jar in _ivy_jars(pyspark)[-1:] if (root := maven.ivy_default_root(jar))]
    maven.download(coordinate.path, roots=roots, into=into)
    if not zipfile.is_zipfile(into):
        # A page of a proxy that wants a password, for one.
        raise maven.DownloadError(f"what came as {coordinate.jar_name} is no jar")


def _fetch_with_ivy(
    coordinate: Coordinate,
    *,
    into: Path,
    java: JavaInstallation,
    pyspark: PysparkInstallation,
    repositories: Sequence[str],
    why: maven.DownloadError,
) -> None:
    """Let Ivy retrieve the jar: it may know a proxy or an authority by Java's own settings."""
    command = _ivy_command(
        coordinate, java=java, pyspark=pyspark, folder=into.parent, repositories=repositories, why=why
    )
    try:
        ivy = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_RESOLVE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise BundleError(f"Bundle {coordinate} was not fetched: {why}; {error}") from error
    # Ivy's exit code is 0 for some failures; the jar is the proof.
    if not into.is_file() or not zipfile.is_zipfile(into):
        raise BundleError(
            f"Bundle {coordinate} does not resolve: {why}. Check the coordinate, the network and the repositories "
            f"({maven.REPOSITORIES_VARIABLE}); or download the jar and give its path. Ivy, which was tried then, "
            f"said:\n{_last_lines(ivy.stdout)}"
        )


def _ivy_jars(pyspark: PysparkInstallation) -> list[Path]:
    return sorted(pyspark.jars.glob("ivy-*.jar"))


def _ivy_command(
    coordinate: Coordinate,
    *,
    java: JavaInstallation,
    pyspark: PysparkInstallation,
    folder: Path,
    repositories: Sequence[str],
    why: maven.DownloadError,
) -> list[str]:
    ivy_jars = _ivy_jars(pyspark)
    if not ivy_jars:
        raise BundleError(
            f"Bundle {coordinate} was not downloaded: {why}. Nor is there an ivy jar in {pyspark.jars} to "
            "fetch it with; give the path of a downloaded bundle."
        )
    settings: list[str] = []
    if repositories:
        # A file, not arguments: the address of a private repository may hold a password.
        path = folder / "ivysettings.xml"
        path.write_text(_ivy_settings(repositories), encoding="utf-8")
        settings = ["-settings", str(path)]
    wanted = ["-dependency", coordinate.group, coordinate.artifact, coordinate.version, "-notransitive"]
    return [
        *(str(java.executable), "-jar", str(ivy_jars[-1]), *settings, "-cache", str(folder / "cache"), *wanted),
        *("-types", "jar", "-confs", "default", "-retrieve", str(folder / "[artifact]-[revision].[ext]")),
    ]


def _ivy_settings(repositories: Sequence[str]) -> str:
    resolvers = "".join(
        f'<ibiblio name="repository-{number}" m2compatible="true" root={quoteattr(root)}/>'
        for number, root in enumerate(repositories, start=1)
    )
    return (
        '<ivysettings><settings defaultResolver="chain"/>'
        f'<resolvers><chain name="chain" returnFirst="true">{resolvers}</chain></resolvers></ivysettings>'
    )


def _last_lines(text: str) -> str:
    """Return the end of Ivy's output without passwords in addresses and without its rows of dots."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip(" .\t")]
    return re.sub(r"://[^/@\s]+@", "://***@", "\n".join(lines[-_IVY_LINES:]))


def main(arguments: Sequence[str]) -> int:
    """Fetch a bundle and print the path of its jar; 1 with a message when that fails."""
    bundle = arguments[0] if arguments else DEFAULT_BUNDLE
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # To standard error: standard output is the path's.
    print(f"Hudi bundle {bundle}: fetched once into {default_cache_dir()}", file=sys.stderr)  # noqa: T201
    try:
        jar = resolve_bundle(bundle, java=find_java(), pyspark=find_pyspark(sys.executable))
    except (BundleError, OSError, ValueError) as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(jar)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
