"""How a plan is executed: as it was scheduled, and what may be said beside that."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.commit import PendingPlan, PlanKind
from airflow_hudi_maint.core.model.instant import parse_instant_file_name
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.planning.execution_settings import ExecutionSettings, planned_rewrite

AS_PLANNED = ExecutionSettings()
COLUMNS = "hoodie.clustering.plan.strategy.sort.columns"
SORTED = ClusteringSettings(sort_columns=("city", "at"), layout=Layout.ZORDER, target_file_bytes=512 * 1024**2)


def _plan(
    *, columns: str = "city,at", strategy: ExecutionStrategy | None = ExecutionStrategy.SORT_AND_SIZE, layout: str = ""
) -> PendingPlan:
    instant = parse_instant_file_name("20261130100000000.clustering.requested")
    assert instant is not None
    return PendingPlan(
        instant=instant,
        kind=PlanKind.CLUSTERING,
        groups=(),
        output_file_count=0,
        strategy_class=strategy.class_name if strategy else "",
        parameters={COLUMNS: columns} if columns else {},
        extra_metadata={"airflow_hudi_maint.layout": layout} if layout else {},
    )


def test_what_hudi_keeps_in_no_plan_is_said_again() -> None:
    """Hudi takes layout, strategy and target from the options of the execution; for a curve the sort columns, too."""
    rewrite = planned_rewrite(_plan(), planned=SORTED, asked=AS_PLANNED)
    assert {
        "hoodie.layout.optimize.strategy": "ZORDER",
        COLUMNS: "city,at",
        "hoodie.clustering.execution.strategy.class": ExecutionStrategy.SORT_AND_SIZE.class_name,
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(512 * 1024**2),
    } == rewrite.options()


def test_a_plan_of_ours_carries_its_layout() -> None:
    """The extra metadata of a plan that we wrote says it when our document is gone."""
    assert Layout.HILBERT is planned_rewrite(_plan(layout="hilbert"), planned=None, asked=AS_PLANNED).layout


def test_a_plan_of_somebody_else_may_be_given_a_layout() -> None:
    """Nobody noted one; without a word it is linear, and the target is left to Hudi."""
    chosen = planned_rewrite(_plan(), planned=None, asked=ExecutionSettings(layout=Layout.ZORDER))
    silent = planned_rewrite(_plan(), planned=None, asked=AS_PLANNED)
    assert (Layout.ZORDER, Layout.LINEAR, None) == (chosen.layout, silent.layout, silent.target_file_bytes)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (ExecutionSettings(sort_columns=("at",)), "sort_columns=at contradicts .* scheduled with city, at"),
        (ExecutionSettings(sort_columns=()), "sort_columns=none contradicts"),
        (ExecutionSettings(layout=Layout.LINEAR), "layout=linear contradicts .* scheduled with zorder"),
        (
            ExecutionSettings(execution_strategy=ExecutionStrategy.BINARY_COPY),
            "execution_strategy=binary_copy contradicts .* scheduled with sort_and_size",
        ),
    ],
)
def test_a_contradiction_is_refused(asked: ExecutionSettings, words: str) -> None:
    """The error names both values and what to do."""
    with pytest.raises(InvalidSettingError, match=f"{words}.* schedule again with"):
        planned_rewrite(_plan(), planned=SORTED, asked=asked)


def test_what_agrees_is_accepted() -> None:
    """The same settings said twice are no contradiction."""
    asked = ExecutionSettings(
        sort_columns=("city", "at"), layout=Layout.ZORDER, execution_strategy=ExecutionStrategy.SORT_AND_SIZE
    )
    assert planned_rewrite(_plan(), planned=SORTED, asked=asked) == planned_rewrite(
        _plan(), planned=SORTED, asked=AS_PLANNED
    )


def test_a_curve_needs_columns_to_run_through() -> None:
    """A plan without sort columns cannot be given a z-order."""
    with pytest.raises(InvalidSettingError, match="layout=zorder needs sort columns"):
        planned_rewrite(_plan(columns=""), planned=None, asked=ExecutionSettings(layout=Layout.ZORDER))


def test_options_leave_the_plan_and_the_arguments_alone() -> None:
    """A Hudi option that an argument sets, or the plan, would contradict either."""
    with pytest.raises(InvalidSettingError, match=r"hoodie.layout.optimize.strategy is set by layout"):
        ExecutionSettings(options={"hoodie.layout.optimize.strategy": "HILBERT"})
    with pytest.raises(InvalidSettingError, match="parallelism=0 is too small"):
        ExecutionSettings(parallelism=0)
    assert {
        "hoodie.clustering.max.parallelism": "4",
        "hoodie.clustering.group.read.parallelism": "8",
        "hoodie.memory.merge.max.size": "1073741824",
    } == ExecutionSettings(
        parallelism=4, read_parallelism=8, options={"hoodie.memory.merge.max.size": "1073741824"}
    ).common_options()
