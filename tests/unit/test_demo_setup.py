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
