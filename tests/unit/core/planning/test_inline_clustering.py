"""Options for a writer that clusters by itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.planning.inline_clustering import ClusteringMode, inline_clustering_options

MINE = {"hoodie.table.name": "trips", "hoodie.datasource.write.operation": "insert"}


@pytest.mark.parametrize(
    ("mode", "switch", "commits"),
    [
        ("inline", "hoodie.clustering.inline", "hoodie.clustering.inline.max.commits"),
        ("schedule", "hoodie.clustering.schedule.inline", "hoodie.clustering.async.max.commits"),
        ("async", "hoodie.clustering.async.enabled", "hoodie.clustering.async.max.commits"),
    ],
)
def test_exactly_one_switch_is_on(mode: str, switch: str, commits: str) -> None:
    """Two at once would have the same service run in the write and beside it; the writer's own options stay."""
    options = inline_clustering_options(MINE, mode=mode, max_commits=6)
    switches = {
        name: options[name]
        for name in ("hoodie.clustering.inline", "hoodie.clustering.schedule.inline", "hoodie.clustering.async.enabled")
    }
    assert {name: "true" if name == switch else "false" for name in switches} == switches
    assert "6" == options[commits]
    assert MINE.items() <= options.items()
    assert all(isinstance(value, str) for value in options.values())


def test_settings_become_hudis_options() -> None:
    """Sizes, columns, layout, strategy and groups, in Hudi's words."""
    settings = ClusteringSettings(
        target_file_bytes=512,
        small_file_bytes=100,
        max_group_bytes=1024,
        max_groups=5,
        sort_columns=("city", "at"),
        layout=Layout.HILBERT,
        execution_strategy=ExecutionStrategy.SINGLE_FILE_SORT,
    )
    options = inline_clustering_options(settings=settings)
    strategy = "hoodie.clustering.plan.strategy"
    assert {
        f"{strategy}.target.file.max.bytes": "512",
        f"{strategy}.small.file.limit": "100",
        f"{strategy}.max.bytes.per.group": "1024",
        f"{strategy}.max.num.groups": "5",
        f"{strategy}.sort.columns": "city,at",
        "hoodie.layout.optimize.strategy": "HILBERT",
        "hoodie.clustering.execution.strategy.class": ExecutionStrategy.SINGLE_FILE_SORT.class_name,
    }.items() <= options.items()
    unsorted = inline_clustering_options()
    assert "false" == unsorted[f"{strategy}.single.group.clustering.enabled"]
    assert "hoodie.layout.optimize.strategy" not in unsorted


@pytest.mark.parametrize(
    ("writer", "words"),
    [
        ({"hoodie.clustering.async.enabled": True}, "hoodie.clustering.async.enabled=true, and it would be false"),
        ({"hoodie.clustering.schedule.inline": "TRUE"}, "hoodie.clustering.schedule.inline=TRUE"),
        ({"hoodie.clustering.inline": "false"}, "hoodie.clustering.inline=false, and it would be true"),
        ({"hoodie.clustering.inline.max.commits": 2}, "max.commits=2, and it would be 4"),
        ({"hoodie.clustering.plan.strategy.small.file.limit": "1"}, "small.file.limit=1, and it would be 314572800"),
        ({"hoodie.datasource.clustering.async.enable": "true"}, "another name of hoodie.clustering.async.enabled"),
        ({"hoodie.table.services.enabled": False}, "hoodie.table.services.enabled=false, which runs no clustering"),
        ({"hoodie.clustering.plan.strategy.sort.columns": "city"}, "sort.columns=city, and sort_columns is empty"),
        ({"hoodie.layout.optimize.strategy": "ZORDER"}, "=ZORDER, which needs sort_columns"),
        ({"hoodie.table.name": None}, "hoodie.table.name=None is no text"),
    ],
)
def test_what_the_writer_already_says_otherwise_is_refused(writer: Mapping[str, object], words: str) -> None:
    """The message has both values: the later one would win without a word."""
    with pytest.raises(InvalidSettingError, match=words):
        inline_clustering_options(writer)


def test_another_process_needs_a_lock() -> None:
    """A writer that says it is alone must not have its plans executed elsewhere."""
    with pytest.raises(InvalidSettingError, match="lock provider"):
        inline_clustering_options({"hoodie.write.concurrency.mode": "SINGLE_WRITER"}, mode=ClusteringMode.SCHEDULE)


def test_the_same_value_in_other_words_is_no_contradiction() -> None:
    """Numbers and truth values come as they are in Python."""
    writer = {"hoodie.clustering.inline": True, "hoodie.clustering.inline.max.commits": 4}
    assert "true" == inline_clustering_options(writer)["hoodie.clustering.inline"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_commits": 0}, "max_commits=0 is no whole number of at least 1"),
        ({"max_commits": True}, "max_commits=True"),
        ({"mode": "both"}, "mode='both' is unknown; expected inline, schedule, async"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], words: str) -> None:
    """Sizes that contradict each other are refused by the settings themselves."""
    with pytest.raises(InvalidSettingError, match=words):
        inline_clustering_options(**arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidSettingError, match="binary_copy copies rows"):
        ClusteringSettings(sort_columns=("city",), execution_strategy=ExecutionStrategy.BINARY_COPY)
    with pytest.raises(InvalidSettingError, match="is not above small_file_bytes"):
        ClusteringSettings(target_file_bytes=300 * 1024**2)
