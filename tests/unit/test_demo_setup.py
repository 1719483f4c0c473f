"""The set-up that every `make` target begins with: what it trusts, and what it makes anew."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "setup.py"


def load_setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load_setup()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that was set up to the end."""
    (tmp_path / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (tmp_path / "constraints.txt").write_text("pytest==9\n", encoding="utf-8")
    (tmp_path / ".venv").mkdir()
    (tmp_path / "bundle.jar").touch()
    setup.write_stamp(tmp_path, paths=[tmp_path / "bundle.jar"])
    return tmp_path


def test_a_finished_set_up_is_trusted(project: Path) -> None:
    assert setup.is_ready(project)


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_gets_installed_asks_for_another_set_up(project: Path, name: str) -> None:
    with (project / name).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert not setup.is_ready(project)


def test_a_bundle_that_is_gone_asks_for_another_set_up(project: Path) -> None:
    (project / "bundle.jar").unlink()
    assert not setup.is_ready(project)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fingerprint": 1}', "half a li"])
def test_a_broken_stamp_asks_for_another_set_up(project: Path, text: str) -> None:
    (project / ".venv" / "setup.json").write_text(text, encoding="utf-8")
    assert not setup.is_ready(project)


def fake_java(folder: Path, *, says: str, code: int = 0) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "17.0.9" 2023-10-17', 17), ('java version "1.8.0_372"', 8), ('openjdk version "21"', 21)],
)
def test_the_version_of_a_java_is_what_it_says_itself(tmp_path: Path, says: str, version: int) -> None:
    assert setup.java_version(fake_java(tmp_path, says=says)) == version


def test_a_java_that_fails_or_is_missing_has_no_version(tmp_path: Path) -> None:
    assert setup.java_version(fake_java(tmp_path, says='version "17"', code=1)) is None
    assert setup.java_version(tmp_path / "nothing") is None


def test_java_home_goes_before_path_unless_spark_cannot_run_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = fake_java(tmp_path / "path", says='version "11.0.1"')
    monkeypatch.setenv("PATH", f"{on_path.parent}:/usr/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "home", says='version "17.0.1"').parents[1]))
    assert setup.find_java() == tmp_path / "home" / "bin" / "java"
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "new", says='version "21.0.1"').parents[1]))
    assert setup.find_java() == on_path


def test_a_half_made_environment_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "setup.begun").touch()
    (tmp_path / ".venv" / "half").touch()
    python = setup.make_environment(tmp_path)
    assert setup.works([python, "-c", f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"])
    assert not (tmp_path / ".venv" / "half").exists()
    assert (tmp_path / ".venv" / "setup.begun").exists()


def test_a_folder_of_the_user_is_never_removed(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "thesis.txt").touch()
    with pytest.raises(setup.SetupError, match="no virtual environment"):
        setup.make_environment(tmp_path)
    assert (tmp_path / ".venv" / "thesis.txt").exists()


def test_a_command_that_fails_says_what_could_not_be_done() -> None:
    with pytest.raises(setup.SetupError, match=r"the packages could not be installed \(exit code 2"):
        setup.run([sys.executable, "-c", "raise SystemExit(2)"], problem="the packages could not be installed")
