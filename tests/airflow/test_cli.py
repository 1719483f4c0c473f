"""``airflow hudi …`` as a process, as a shell starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.airflow.environment import ROOT
from tests.airflow.marks import AIRFLOW
from tests.golden.golden import unpack

pytestmark = AIRFLOW

AIRFLOW_COMMAND = [sys.executable, "-m", "airflow", "hudi"]


def test_show_answers_a_script_without_a_metadata_database(tmp_path: Path) -> None:
    """A fresh home, a base path, and stdout that is JSON and nothing else."""
    table = unpack("v9_mor_pending", tmp_path)
    home = tmp_path / "home"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    environment |= {"AIRFLOW_HOME": str(home), "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/none.db"}
    command = [*AIRFLOW_COMMAND, "show", str(table), "--output", "json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert answer.returncode == 0, answer.stderr
    shown = json.loads(answer.stdout)
    assert (shown["table"], shown["table_version"], len(shown["pending"])) == ("trips", 9, 3)
    assert not (home / "none.db").exists()


def test_a_reader_that_has_enough_ends_a_command_quietly(tmp_path: Path) -> None:
    """As in ``airflow hudi timeline … | head -1``."""
    code = (
        "from argparse import Namespace; from airflow_hudi_maint.cli.command import hudi_command\n"
        "hudi_command(lambda args: print('row\\n' * 100_000))(Namespace(verbose=False))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as one:
        assert one.stdout is not None
        assert one.stderr is not None
        one.stdout.close()
        complaint = one.stderr.read()
    assert (one.returncode, complaint) == (141, b"")
