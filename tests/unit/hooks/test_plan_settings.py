"""Arguments of operators and commands as settings of a clustering plan."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.hooks.plan_settings import clustering_settings, clustering_strategy


@pytest.mark.parametrize("unset", [None, "", " "])
def test_what_is_not_given_has_its_default(unset: object) -> None:
    """A template that rendered to nothing is as if the argument were left out."""
    settings = clustering_settings(
        target_file_bytes=unset, small_file_bytes=unset, layout=unset, execution_strategy=unset
    )
    assert settings == ClusteringSettings()
    assert clustering_strategy(strategy=unset, strategy_options=unset) == {
        "strategy": "size_based",
        "strategy_options": {},
    }


def test_words_are_read_as_what_they_stand_for() -> None:
    """Layout and execution strategy by their names."""
    settings = clustering_settings(
        target_file_bytes="200",
        small_file_bytes=100,
        sort_columns="a,b",
        layout="zorder",
        execution_strategy="single_file_sort",
    )
    assert (Layout.ZORDER, ExecutionStrategy.SINGLE_FILE_SORT) == (settings.layout, settings.execution_strategy)


def test_an_unknown_word_is_refused_with_those_that_there_are() -> None:
    """The message names the argument, its value and the known ones."""
    known = "execution_strategy='sorted' is unknown; known are sort_and_size, single_file_sort, binary_copy"
    with pytest.raises(InvalidSettingError, match=known):
        clustering_settings(target_file_bytes=None, small_file_bytes=None, execution_strategy="sorted")


@pytest.mark.parametrize("options", [{"lookback": 3, "skip_from_latest": ""}, '{"lookback": 3}'])
def test_options_are_a_mapping_or_json(options: Mapping[str, object] | str) -> None:
    """Options that rendered to nothing are left out."""
    assert clustering_strategy(strategy="recent_days", strategy_options=options) == {
        "strategy": "recent_days",
        "strategy_options": {"lookback": 3},
    }


def test_options_that_are_no_mapping_are_refused() -> None:
    """A list of options has no names."""
    with pytest.raises(InvalidSettingError, match="strategy_options is no JSON object but list"):
        clustering_strategy(strategy="recent_days", strategy_options="[3]")
