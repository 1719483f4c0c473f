"""The partitions that a plan considers: those that were named, or all."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from airflow_hudi_maint.core.errors import InvalidSettingError, UnknownPartitionError
from airflow_hudi_maint.core.planning.wording import some_of


def considered(known: Collection[str], *, partitions: Collection[str] | None) -> Sequence[str]:
    """Return partition paths in order; ``partitions`` None means every one of ``known``, which are those with data.

    Raises UnknownPartitionError for a name without data, and InvalidSettingError for an empty list of names.

    >>> considered(["day=2", "day=1"], partitions=None)
    ['day=1', 'day=2']
    """
    if partitions is None:
        return sorted(known)
    if isinstance(partitions, str) or not partitions:
        raise InvalidSettingError(
            f"partitions={partitions!r} names no partition: pass a list of names, or None for all"
        )
    unknown = set(partitions) - set(known)
    if unknown:
        raise UnknownPartitionError(
            f"the table has no data in {len(unknown)} of the partitions named: {some_of(unknown)}; "
            f"it has {some_of(known) if known else 'none at all'}"
        )
    return sorted(set(partitions))
