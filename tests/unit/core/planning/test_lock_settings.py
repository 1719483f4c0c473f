"""Which lock the writers' options ask for, and which of them can be taken without a JVM."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.planning.lock_settings import FileLock, file_lock

LOCKS = "org.apache.hudi.client.transaction.lock"
FILE_SYSTEM = f"{LOCKS}.FileSystemBasedLockProvider"
OPTIMISTIC = {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}


def test_a_single_writer_takes_no_lock() -> None:
    """No provider, no lock; other options say nothing."""
    assert None is file_lock({"hoodie.write.concurrency.mode": "single_writer", "hoodie.write.lock.zookeeper.url": "z"})


def test_the_lock_of_the_file_system_has_a_folder_and_an_expiry() -> None:
    """Both by Hudi's keys; without them in the table's own folder and for ever."""
    folder = {"hoodie.write.lock.filesystem.path": "/locks", "hoodie.write.lock.filesystem.expire": "10"}

    assert FileLock(folder=None, expire_minutes=0, is_optimistic=True) == file_lock(
        {**OPTIMISTIC, "hoodie.write.lock.provider": FILE_SYSTEM}
    )
    assert FileLock(folder="/locks", expire_minutes=10, is_optimistic=False) == file_lock(
        {"hoodie.write.lock.provider": FILE_SYSTEM, **folder}
    )


@pytest.mark.parametrize("mode", ["optimistic_concurrency_control", "single_writer"])
@pytest.mark.parametrize(
    "provider",
    [
        f"{LOCKS}.InProcessLockProvider",
        f"{LOCKS}.NoopLockProvider",
        f"{LOCKS}.ZookeeperBasedLockProvider",
        f"{LOCKS}.ZookeeperBasedImplicitBasePathLockProvider",
        f"{LOCKS}.StorageBasedLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
        "com.example.OurOwn",
    ],
)
def test_a_lock_that_only_a_jvm_can_take_is_refused_by_name(provider: str, mode: str) -> None:
    """In every mode: who names a provider has writers that rely on it."""
    options = {"hoodie.write.concurrency.mode": mode, "hoodie.write.lock.provider": provider}

    with pytest.raises(InvalidSettingError, match=provider.rpartition(".")[2]):
        file_lock(options)


@pytest.mark.parametrize("mode", ["optimistic_concurrency_control", "NON_BLOCKING_CONCURRENCY_CONTROL"])
def test_several_writers_without_a_provider_are_refused(mode: str) -> None:
    """There is a lock that nobody names."""
    with pytest.raises(InvalidSettingError, match=r"names no hoodie\.write\.lock\.provider"):
        file_lock({"hoodie.write.concurrency.mode": mode})


def test_writers_that_do_not_block_are_not_run_beside() -> None:
    """Their conflicts are not found at the commit, so the lock alone does not make a plan safe beside a write."""
    options = {
        "hoodie.write.concurrency.mode": "non_blocking_concurrency_control",
        "hoodie.write.lock.provider": FILE_SYSTEM,
    }
    lock = file_lock(options)

    assert lock is not None
    assert not lock.is_optimistic


def test_an_expiry_that_is_no_number_is_refused() -> None:
    """With key and value."""
    with pytest.raises(InvalidSettingError, match=r"filesystem\.expire='5m'"):
        file_lock({"hoodie.write.lock.provider": FILE_SYSTEM, "hoodie.write.lock.filesystem.expire": "5m"})
