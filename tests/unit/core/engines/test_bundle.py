"""Bundles: where the jar is, which release it is, which tables it may touch."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines import maven
from airflow_hudi_maint.core.engines.bundle import (
    DEFAULT_BUNDLE,
    bundle_version,
    check_bundle,
    check_spark,
    main,
    parse_coordinate,
    resolve_bundle,
)
from airflow_hudi_maint.core.engines.java import JavaInstallation
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation
from airflow_hudi_maint.core.errors import BundleError
from tests.unit.core.engines.conftest import fake_java

if TYPE_CHECKING:
    from pathlib import Path

COORDINATE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:{}"
IVY = """#!/bin/sh
echo "$@" >> {log}
[ -n "{fail}" ] && {{ echo "downloading from https://user:hunter2@host/x"; echo "unresolved dependency"; exit 1; }}
for target; do :; done
folder=$(dirname "$target")
cp {jar} "$folder/hudi-spark3.5-bundle_2.12-1.2.0.jar"
"""


@pytest.fixture
def pyspark(tmp_path: Path) -> PysparkInstallation:
    home = tmp_path / "pyspark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "ivy-2.5.3.jar").touch()
    return PysparkInstallation(home=home, version="3.5.9")


def ivy(tmp_path: Path, *, fail: bool = False) -> JavaInstallation:
    """Make a ``java`` that behaves as Ivy does: it writes its arguments down and retrieves a jar, or fails."""
    jar = tmp_path / "remote.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", "")
    home = fake_java(tmp_path / ("bad" if fail else "good"), version="17")
    script = IVY.format(log=tmp_path / "ivy.log", fail="yes" if fail else "", jar=jar)
    (home / "bin" / "java").write_text(script, encoding="utf-8")
    return JavaInstallation(home=home, major=17, source="test")


def test_a_coordinate_is_fetched_once(tmp_path: Path, pyspark: PysparkInstallation) -> None:
    """The second time the cache answers; nothing but the jar and its lock stays there."""
    java = ivy(tmp_path)
    jars = [resolve_bundle(DEFAULT_BUNDLE, java=java, pyspark=pyspark, cache_dir=tmp_path / "cache") for _ in range(2)]
    assert jars == [tmp_path / "cache" / "jars" / "hudi-spark3.5-bundle_2.12-1.2.0.jar"] * 2
    assert (tmp_path / "ivy.log").read_text().count("\n") == 1
    assert sorted(path.name for path in jars[0].parent.iterdir()) == [f".{jars[0].name}.lock", jars[0].name]


def test_the_cache_can_be_moved(tmp_path: Path, pyspark: PysparkInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    """AIRFLOW_HUDI_MAINT_CACHE names another cache."""
    monkeypatch.setenv("AIRFLOW_HUDI_MAINT_CACHE", str(tmp_path / "elsewhere"))
    jar = resolve_bundle(DEFAULT_BUNDLE, java=ivy(tmp_path), pyspark=pyspark)
    assert jar.is_relative_to(tmp_path / "elsewhere")


def test_a_failure_names_the_coordinate_and_quotes_ivy(tmp_path: Path, pyspark: PysparkInstallation) -> None:
    """The error has Ivy's last lines without the password of an address, and the cache has no jar."""
    with pytest.raises(BundleError) as error:
        resolve_bundle(DEFAULT_BUNDLE, java=ivy(tmp_path, fail=True), pyspark=pyspark, cache_dir=tmp_path / "cache")
    assert DEFAULT_BUNDLE in str(error.value)
    assert "unresolved dependency" in str(error.value)
    assert "hunter2" not in str(error.value)
    assert not list((tmp_path / "cache" / "jars").glob("*.jar"))


def test_addresses_of_repositories_are_not_on_the_command_line(
    tmp_path: Path, pyspark: PysparkInstallation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private repository's address may hold a password: it goes by a settings file."""
    monkeypatch.setattr(maven, "_PAUSE_SECONDS", 0.0)
    resolve_bundle(
        DEFAULT_BUNDLE,
        java=ivy(tmp_path),
        pyspark=pyspark,
        cache_dir=tmp_path / "cache",
        repositories=["http://user:hunter2@127.0.0.1:1/maven"],
    )
    arguments = (tmp_path / "ivy.log").read_text()
    assert "-settings" in arguments
    assert "hunter2" not in arguments


def test_a_path_is_taken_as_it_is(tmp_path: Path, pyspark: PysparkInstallation) -> None:
    """A jar that exists needs no Ivy."""
    jar = tmp_path / "mine.jar"
    jar.touch()
    assert resolve_bundle(str(jar), java=ivy(tmp_path), pyspark=pyspark) == jar


def test_a_path_that_is_not_there_is_refused(tmp_path: Path, pyspark: PysparkInstallation) -> None:
    """The message shows what a coordinate looks like, since a typing error in one reads as a path."""
    with pytest.raises(BundleError, match=r"mine\.jar.*org\.apache\.hudi"):
        resolve_bundle(str(tmp_path / "mine.jar"), java=ivy(tmp_path), pyspark=pyspark)


@pytest.mark.parametrize(
    ("bundle", "version"),
    [
        (DEFAULT_BUNDLE, (1, 2, 0)),
        (COORDINATE.format("0.15.0"), (0, 15, 0)),
        (COORDINATE.format("1.1.1-rc2"), (1, 1, 1)),
        ("/jars/hudi-spark3.5-bundle_2.12-1.0.2.jar", (1, 0, 2)),
        ("/jars/hudi-spark3.5-bundle_2.12-1.0.2-patched.jar", (1, 0, 2)),
    ],
)
def test_the_release_is_in_the_name(bundle: str, version: tuple[int, int, int]) -> None:
    """A coordinate and a usual file name say it without a look into the jar."""
    assert bundle_version(bundle) == version


def test_a_jar_of_another_name_is_asked_itself(tmp_path: Path) -> None:
    """The bundle's own pom.properties counts, not one of what it has taken in."""
    jar = tmp_path / "hudi.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("META-INF/maven/org.apache.hudi/hudi-common/pom.properties", "version=9.9.9\n")
        archive.writestr(
            "META-INF/maven/org.apache.hudi/hudi-spark3.5-bundle_2.12/pom.properties", "#x\nversion=1.1.1\n"
        )
    assert bundle_version(str(jar)) == (1, 1, 1)


def test_a_jar_that_says_nothing_is_refused(tmp_path: Path) -> None:
    """Without a release the table could be upgraded by accident, so the bundle is refused by name."""
    jar = tmp_path / "hudi.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr("x", "")
    with pytest.raises(BundleError, match=r"hudi\.jar"):
        bundle_version(str(jar))


@pytest.mark.parametrize(
    ("release", "table_version"),
    [("0.15.0", 6), ("1.0.2", 8), ("1.1.1", 6), ("1.1.1", 8), ("1.1.1", 9), ("1.2.0", 6), ("1.2.0", 8), ("1.2.0", 9)],
)
def test_a_bundle_maintains_the_versions_that_it_writes(release: str, table_version: int) -> None:
    """These pairs were run: the table stays at its version."""
    check_bundle(COORDINATE.format(release), table_version=table_version)


@pytest.mark.parametrize(
    ("release", "table_version", "able"),
    [
        ("0.15.0", 8, "1.0, 1.1, 1.2"),
        ("1.0.2", 6, "0.14, 0.15, 1.1, 1.2"),
        ("1.0.2", 9, "1.1, 1.2"),
        ("2.0.0", 9, "1.1, 1.2"),
    ],
)
def test_a_bundle_that_would_upgrade_is_refused(release: str, table_version: int, able: str) -> None:
    """The error names the bundle, the table's version and the releases that can."""
    with pytest.raises(BundleError) as error:
        check_bundle(COORDINATE.format(release), table_version=table_version)
    assert release in str(error.value)
    assert f"version {table_version} " in str(error.value)
    assert str(error.value).endswith(f"Use a bundle of Hudi {able}.")


def test_a_bundle_of_another_spark_is_refused() -> None:
    """The name of a bundle says for which Spark it is; one that does not say is let through."""
    check_spark(DEFAULT_BUNDLE, spark_release="3.5")
    check_spark("/jars/mine.jar", spark_release="4.0")
    with pytest.raises(BundleError, match=r"is for Spark 3\.5, and pyspark is 4\.0"):
        check_spark(DEFAULT_BUNDLE, spark_release="4.0")


def test_a_path_with_colons_is_no_coordinate() -> None:
    """Only group:artifact:version is one."""
    assert parse_coordinate(DEFAULT_BUNDLE) is not None
    assert parse_coordinate("C:/jars/x.jar") is None
    assert parse_coordinate("/jars/a:b:c.jar") is None


def test_the_command_prints_the_path_of_the_jar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output is the path alone, for scripts; the message is on standard error."""
    jars = tmp_path / "cache" / "jars"
    jars.mkdir(parents=True)
    (jars / "hudi-spark3.5-bundle_2.12-1.2.0.jar").touch()
    monkeypatch.setenv("AIRFLOW_HUDI_MAINT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", version='openjdk version "17.0.9"')))
    assert main([]) == 0
    output = capsys.readouterr()
    assert output.out == f"{jars / 'hudi-spark3.5-bundle_2.12-1.2.0.jar'}\n"
    assert DEFAULT_BUNDLE in output.err
