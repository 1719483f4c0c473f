"""The options by which a writer clusters its table itself, in or beside its own writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.planning.clustering_properties import (
    EXECUTION_KEY,
    LAYOUT_KEY,
    SMALL_BYTES_KEY,
    SORT_COLUMNS_KEY,
    STRATEGY,
    TARGET_BYTES_KEY,
)

INLINE_KEY = "hoodie.clustering.inline"
INLINE_COMMITS_KEY = "hoodie.clustering.inline.max.commits"
SCHEDULE_KEY = "hoodie.clustering.schedule.inline"
ASYNC_KEY = "hoodie.clustering.async.enabled"
ASYNC_COMMITS_KEY = "hoodie.clustering.async.max.commits"

_SWITCHES = (INLINE_KEY, SCHEDULE_KEY, ASYNC_KEY)
_DATASOURCE_SWITCHES = {
    INLINE_KEY: "hoodie.datasource.clustering.inline.enable",
    ASYNC_KEY: "hoodie.datasource.clustering.async.enable",
}
"""Names that Spark's data source knows for the same."""
_SERVICES_KEY = "hoodie.table.services.enabled"
_MODE_KEY = "hoodie.write.concurrency.mode"
_NOTHING: Mapping[str, object] = {}
_BY_DEFAULT = ClusteringSettings()


class ClusteringMode(StrEnum):
    """Who schedules and who executes.

    ``inline``: the writer does both after a write, and the write takes longer. ``schedule``: the writer schedules, and
    another process executes, such as HudiExecuteClusteringOperator. ``async``: the writer executes in a thread of its
    own (streaming writers; a batch writer only schedules then).
    """

    INLINE = "inline"
    SCHEDULE = "schedule"
    ASYNC = "async"


_SWITCH_OF = {
    ClusteringMode.INLINE: (INLINE_KEY, INLINE_COMMITS_KEY),
    ClusteringMode.SCHEDULE: (SCHEDULE_KEY, ASYNC_COMMITS_KEY),
    ClusteringMode.ASYNC: (ASYNC_KEY, ASYNC_COMMITS_KEY),
}


def inline_clustering_options(
    writer_options: Mapping[str, object] = _NOTHING,
    *,
    mode: ClusteringMode | str = ClusteringMode.INLINE,
    max_commits: int = 4,
    settings: ClusteringSettings = _BY_DEFAULT,
) -> dict[str, str]:
    """Return ``writer_options`` with those that make the writer cluster: to be given to its ``.options(**…)``.

    A plan is made once ``max_commits`` commits came since the last clustering; Hudi 0.15 makes one after every write
    with ``schedule``. ``settings.max_groups`` None leaves Hudi's limit of 30 groups in a plan.

    Raises InvalidSettingError for settings that contradict each other or the writer's own options, with both values.

    >>> sizes = ClusteringSettings(sort_columns=("city",))
    >>> options = inline_clustering_options({"hoodie.table.name": "trips"}, max_commits=6, settings=sizes)
    >>> for name in options:
    ...     print(f"{name}={options[name]}")
    hoodie.table.name=trips
    hoodie.clustering.inline=true
    hoodie.clustering.schedule.inline=false
    hoodie.clustering.async.enabled=false
    hoodie.clustering.inline.max.commits=6
    hoodie.clustering.plan.strategy.target.file.max.bytes=1073741824
    hoodie.clustering.plan.strategy.small.file.limit=314572800
    hoodie.clustering.plan.strategy.max.bytes.per.group=2147483648
    hoodie.clustering.plan.strategy.sort.columns=city
    hoodie.layout.optimize.strategy=LINEAR
    """
    if type(max_commits) is not int or max_commits < 1:
        raise InvalidSettingError(f"max_commits={max_commits!r} is no whole number of at least 1")
    chosen = _mode(mode)
    options = dict(_options(chosen, max_commits=max_commits, settings=settings))
    writer = {name: _text(name, value) for name, value in writer_options.items()}
    problems = [*_contradictions(writer, options), *_others(writer, options, mode=chosen)]
    if problems:
        raise InvalidSettingError(f"clustering mode {chosen}: {'; '.join(problems)}")
    return {**writer, **options}


def _options(mode: ClusteringMode, *, max_commits: int, settings: ClusteringSettings) -> Iterator[tuple[str, str]]:
    switch, commits = _SWITCH_OF[mode]
    yield from ((name, "true" if name == switch else "false") for name in _SWITCHES)
    yield commits, str(max_commits)
    yield TARGET_BYTES_KEY, str(settings.target_file_bytes)
    yield SMALL_BYTES_KEY, str(settings.small_file_bytes)
    yield f"{STRATEGY}.max.bytes.per.group", str(settings.max_group_bytes)
    if settings.max_groups is not None:
        yield f"{STRATEGY}.max.num.groups", str(settings.max_groups)
    if settings.sort_columns:
        yield SORT_COLUMNS_KEY, ",".join(settings.sort_columns)
        yield LAYOUT_KEY, settings.layout.upper()
    else:
        # A partition that is one file already would be rewritten by each plan.
        yield f"{STRATEGY}.single.group.clustering.enabled", "false"
    if settings.execution_strategy is not ExecutionStrategy.SORT_AND_SIZE:
        yield EXECUTION_KEY, settings.execution_strategy.class_name


def _contradictions(writer: Mapping[str, str], options: Mapping[str, str]) -> Iterator[str]:
    for name, value in options.items():
        theirs = writer.get(name)
        if theirs is not None and theirs.strip().lower() != value.lower():
            yield f"the writer has {name}={theirs}, and it would be {value}: leave one of them out"


def _others(writer: Mapping[str, str], options: Mapping[str, str], *, mode: ClusteringMode) -> Iterator[str]:
    """What the writer says in other words, or by leaving something out."""
    for name, alias in _DATASOURCE_SWITCHES.items():
        if alias in writer and writer[alias].strip().lower() != options[name]:
            yield f"the writer has {alias}={writer[alias]}, another name of {name}: leave it out"
    if writer.get(_SERVICES_KEY, "true").strip().lower() == "false":
        yield f"the writer has {_SERVICES_KEY}=false, which runs no clustering: leave it out"
    sorts = SORT_COLUMNS_KEY in writer and SORT_COLUMNS_KEY not in options
    if sorts:
        yield f"the writer has {SORT_COLUMNS_KEY}={writer[SORT_COLUMNS_KEY]}, and sort_columns is empty: name them"
    layout = writer.get(LAYOUT_KEY, Layout.LINEAR).strip().lower()
    if LAYOUT_KEY in writer and LAYOUT_KEY not in options and layout != Layout.LINEAR:
        yield f"the writer has {LAYOUT_KEY}={writer[LAYOUT_KEY]}, which needs sort_columns"
    if mode is ClusteringMode.SCHEDULE and writer.get(_MODE_KEY, "").strip().lower() == "single_writer":
        yield (
            f"the writer has {_MODE_KEY}=SINGLE_WRITER, and another process is to execute beside it: give "
            "optimistic_concurrency_control and a lock provider to both"
        )


def _mode(value: ClusteringMode | str) -> ClusteringMode:
    try:
        return ClusteringMode(value)
    except ValueError:
        raise InvalidSettingError(f"mode={value!r} is unknown; expected {', '.join(ClusteringMode)}") from None


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | str):
        return str(value)
    raise InvalidSettingError(f"writer option {name}={value!r} is no text, number or truth value")
