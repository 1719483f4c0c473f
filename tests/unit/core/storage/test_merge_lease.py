"""Leases on a directory: a run that lost its own finds out, whatever happened since."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from airflow_hudi_maint.core.errors import PendingActionError
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.merge_lease import LEASE_FOLDER, holding_lease, live_holder


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage.open(str(tmp_path))


def _held(root: Path) -> dict[str, Any]:
    (path,) = (root / LEASE_FOLDER).iterdir()
    held: dict[str, Any] = json.loads(path.read_text())
    return held


def _rewrite(root: Path, **changes: Any) -> None:
    (path,) = (root / LEASE_FOLDER).iterdir()
    path.write_text(json.dumps({**_held(root), **changes}))


def test_a_run_that_slept_does_not_take_its_lease_back(storage: Storage, tmp_path: Path) -> None:
    """Another took over and is done: what the sleeper planned is outdated, and a heartbeat must not revive it."""
    with holding_lease(storage, run="slow") as lease:
        _rewrite(tmp_path, heartbeat=time.time() - 3600, host="elsewhere")
        with holding_lease(storage, run="quick"):
            pass
        with pytest.raises(PendingActionError, match="another took over"):
            lease.beat()
        with pytest.raises(PendingActionError, match="another took over"):
            lease.check()
    assert not [*(tmp_path / LEASE_FOLDER).iterdir()]


def test_a_lease_of_the_same_number_is_another_runs(storage: Storage, tmp_path: Path) -> None:
    """Numbers begin anew once nobody holds one; the sleeper neither takes it for its own nor deletes it."""
    with holding_lease(storage, run="slow") as lease:
        _rewrite(tmp_path, heartbeat=time.time() - 3600, host="elsewhere")
        with holding_lease(storage, run="quick"):
            pass
        with holding_lease(storage, run="third") as third:
            assert third.number == lease.number
            with pytest.raises(PendingActionError, match="another took over"):
                lease.check()
            lease.release()
            assert _held(tmp_path)["run"] == "third"
            third.check()


def test_a_process_that_is_gone_from_this_machine_holds_nothing(storage: Storage, tmp_path: Path) -> None:
    with holding_lease(storage, run="dead"):
        _rewrite(tmp_path, process=2**22 - 1)
        assert not live_holder(storage)


def test_a_process_in_another_container_is_not_looked_for_here(storage: Storage, tmp_path: Path) -> None:
    """Containers that share the name of their host number their processes each from 1."""
    with holding_lease(storage, run="next door"):
        for process in (2**22 - 1, os.getpid()):
            _rewrite(tmp_path, process=process, machine="another", host=socket.gethostname(), token="other")  # noqa: S106
            assert "run next door" in live_holder(storage)
