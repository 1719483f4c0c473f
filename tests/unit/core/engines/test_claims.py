"""A driver on a cluster and its claim, with Hadoop's file system played by local files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.core.engines.conftest import JOBS
from tests.waiting import eventually

DRIVER = """
import sys, time
from pathlib import Path
from types import SimpleNamespace as Some
from remote import Delivery

class Files:
    def exists(self, path):
        return Path(path.text).exists()
    def open(self, path):
        data = Path(path.text).read_bytes()
        return Some(data=data, close=lambda: None)

class HadoopPath:
    def __init__(self, text):
        self.text = text
    def getFileSystem(self, conf):
        return Files()

def halt(code):
    print("halted", code, flush=True)

jvm = Some(
    org=Some(apache=Some(hadoop=Some(fs=Some(Path=HadoopPath)),
                         commons=Some(io=Some(IOUtils=Some(toByteArray=lambda stream: stream.data))))),
    java=Some(lang=Some(Runtime=Some(getRuntime=lambda: Some(halt=halt)),
                        System=Some(err=Some(println=lambda text: print(text, flush=True))))),
)
delivery = Delivery({"request": {"kind": "clean"}, "folder": sys.argv[1], "claim": "mine"})
delivery.progress_seconds = 0.05
delivery.open(Some(_jvm=jvm, _jsc=Some(hadoopConfiguration=lambda: None)))
print("open", flush=True)
time.sleep(float(sys.argv[2]))
print("done", flush=True)
"""


def claim(folder: Path, text: str) -> None:
    (folder / ".new").write_text(text, encoding="utf-8")
    (folder / ".new").replace(folder / "claim.json")


@contextmanager
def driver(folder: Path, *, seconds: float) -> Iterator[subprocess.Popen[str]]:
    claim(folder, json.dumps({"version": 1, "claim": "mine"}))
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), str(seconds)],
        cwd=JOBS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.kill()


def test_a_driver_whose_claim_is_taken_ends_at_once(tmp_path: Path) -> None:
    """JVM first: a manager that forgot it let another job start, and two must not work on one table."""
    with driver(tmp_path, seconds=60) as process:
        claim(tmp_path, json.dumps({"version": 1, "claim": "of another"}))
        assert eventually(lambda: process.poll() is not None)
        assert process.stdout is not None
        assert process.stdout.read() == "This job was given up for lost, another took its place: stopping\nhalted 1\n"
        assert process.returncode == 1


def test_a_claim_that_cannot_be_read_ends_no_driver(tmp_path: Path) -> None:
    """Only another one that stands there does: storage may hiccup, or a file be replaced just now."""
    with driver(tmp_path, seconds=1.0) as process:
        claim(tmp_path, "{half of")
        (tmp_path / "claim.json").unlink()
        assert process.wait(10) == 0
        assert process.stdout is not None
        assert process.stdout.read() == "done\n"
