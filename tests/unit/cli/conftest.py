"""Run a command in this process, from its command line to its exit code."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden.golden import unpack
from tests.unit.cli.running import Answer, Run, parser


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Give a function that runs ``airflow hudi <line>``."""
    # A command says to its process that it may ask the metadata database; later tests are no such process.
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "")
    monkeypatch.delenv("_AIRFLOW_PROCESS_CONTEXT")

    def run_line(line: str) -> Answer:
        capsys.readouterr()
        code = 0
        try:
            args = parser().parse_args(["hudi", *shlex.split(line)])
            args.func(args)
        except SystemExit as end:
            code = int(end.code or 0)
        written = capsys.readouterr()
        return Answer(code=code, out=written.out, err=written.err)

    return run_line


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Path]:
    """Give a function that unpacks a golden table."""
    return lambda name: unpack(name, tmp_path)
