"""What an execution of a clustering plan is given: the plan's own settings, and what the execution may choose.

Hudi takes of the plan only its files and, for a sort by rows, its sort columns. Layout, execution strategy and target
size are read from the options of whoever executes, and so are the sort columns of a z-order or Hilbert curve (Hudi's
``MultipleSparkJobExecutionStrategy``, ``RowSpatialCurveSortPartitioner`` and ``BaseCommitActionExecutor``, alike in
0.15.0, 1.0.2 and 1.2.0). So what was planned has to be said again, or the rewrite is another one than the plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.commit import PendingPlan
from airflow_hudi_maint.core.model.plan import ClusteringSettings, ExecutionStrategy, Layout
from airflow_hudi_maint.core.model.scheduler import LAYOUT_KEY as OUR_LAYOUT_KEY
from airflow_hudi_maint.core.planning.clustering_properties import (
    EXECUTION_KEY,
    LAYOUT_KEY,
    MAX_PARALLELISM_KEY,
    READ_PARALLELISM_KEY,
    SORT_COLUMNS_KEY,
    TARGET_BYTES_KEY,
    execution_strategy_of,
)

_BY_ARGUMENT = {
    SORT_COLUMNS_KEY: "sort_columns",
    LAYOUT_KEY: "layout",
    EXECUTION_KEY: "execution_strategy",
    MAX_PARALLELISM_KEY: "parallelism",
    READ_PARALLELISM_KEY: "read_parallelism",
    TARGET_BYTES_KEY: "target_file_bytes of the schedule",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionSettings:
    """What whoever executes a plan says; None leaves it to the plan, and to Hudi for the parallelism.

    ``parallelism`` is how many groups are rewritten at a time (Hudi: 15), ``read_parallelism`` how many tasks read a
    group (Hudi: 20, since 1.0). ``target_file_bytes`` counts for a plan that nobody noted a target of. ``options`` are
    Hudi options of this run.
    """

    sort_columns: tuple[str, ...] | None = None
    layout: Layout | None = None
    execution_strategy: ExecutionStrategy | None = None
    parallelism: int | None = None
    read_parallelism: int | None = None
    target_file_bytes: int | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("parallelism", "read_parallelism", "target_file_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidSettingError(f"{name}={value} is too small; expected at least 1")
        for key in self.options:
            if key in _BY_ARGUMENT:
                raise InvalidSettingError(f"option {key} is set by {_BY_ARGUMENT[key]}; leave it out of the options")

    def common_options(self) -> dict[str, str]:
        """The Hudi options that are the same for each plan of the run."""
        chosen = {MAX_PARALLELISM_KEY: self.parallelism, READ_PARALLELISM_KEY: self.read_parallelism}
        return {**{key: str(value) for key, value in chosen.items() if value is not None}, **self.options}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRewrite:
    """How one plan is to be rewritten. ``target_file_bytes`` None: nobody noted or asked for one, so Hudi's holds."""

    sort_columns: tuple[str, ...]
    layout: Layout
    execution_class: str
    target_file_bytes: int | None

    def options(self) -> dict[str, str]:
        """The Hudi options that say so."""
        options = {LAYOUT_KEY: self.layout.upper()}
        if self.sort_columns:
            options[SORT_COLUMNS_KEY] = ",".join(self.sort_columns)
        if self.execution_class:
            options[EXECUTION_KEY] = self.execution_class
        if self.target_file_bytes is not None:
            options[TARGET_BYTES_KEY] = str(self.target_file_bytes)
        return options


def planned_rewrite(
    plan: PendingPlan, *, planned: ClusteringSettings | None, asked: ExecutionSettings
) -> PlannedRewrite:
    """Say how a plan is to be rewritten, by the plan itself and by the settings (``planned``) that it was made with.

    ``planned`` None: the plan is not ours, or our document is gone. Only then may layout and target be chosen now.

    Raises InvalidSettingError when ``asked`` contradicts the plan.
    """
    instant = plan.instant.requested_time
    columns = sort_columns_of(plan)
    if asked.sort_columns is not None and asked.sort_columns != columns:
        raise _contradiction(instant, "sort_columns", asked=_names(asked.sort_columns), planned=_names(columns))
    wanted = asked.execution_strategy
    if wanted is not None and plan.strategy_class not in ("", wanted.class_name):
        known = execution_strategy_of(plan.strategy_class)
        raise _contradiction(instant, "execution_strategy", asked=wanted, planned=known or plan.strategy_class)
    layout = _layout(plan, planned=planned, asked=asked)
    if layout is not Layout.LINEAR and not columns:
        msg = f"layout={layout} needs sort columns, and clustering plan {instant} has none; schedule one that has"
        raise InvalidSettingError(msg)
    return PlannedRewrite(
        sort_columns=columns,
        layout=layout,
        execution_class=plan.strategy_class or (wanted.class_name if wanted else ""),
        target_file_bytes=_target_bytes(plan, planned=planned, asked=asked),
    )


def sort_columns_of(plan: PendingPlan) -> tuple[str, ...]:
    """The columns that a plan sorts by, in order.

    Hudi cuts the text at commas and, for a curve, takes blanks around a name away.
    """
    text = plan.parameters.get(SORT_COLUMNS_KEY, "")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _layout(plan: PendingPlan, *, planned: ClusteringSettings | None, asked: ExecutionSettings) -> Layout:
    noted = plan.extra_metadata.get(OUR_LAYOUT_KEY) or plan.parameters.get(LAYOUT_KEY, "")
    known = planned.layout if planned else None
    if noted.lower() in tuple(Layout):
        known = Layout(noted.lower())
    if known is None:
        return asked.layout or Layout.LINEAR
    if asked.layout not in (None, known):
        raise _contradiction(plan.instant.requested_time, "layout", asked=asked.layout or "", planned=known)
    return known


def _target_bytes(plan: PendingPlan, *, planned: ClusteringSettings | None, asked: ExecutionSettings) -> int | None:
    text = plan.parameters.get(TARGET_BYTES_KEY, "")
    if text.isascii() and text.isdecimal():
        return int(text)
    return planned.target_file_bytes if planned else asked.target_file_bytes


def _names(columns: tuple[str, ...]) -> str:
    return ", ".join(columns) or "none"


def _contradiction(instant: str, name: str, *, asked: str, planned: str) -> InvalidSettingError:
    return InvalidSettingError(
        f"{name}={asked} contradicts clustering plan {instant}, which was scheduled with {planned}: that is "
        f"settled when it is scheduled. Leave {name} out to execute the plan as it is, or resolve the pending plan and "
        f"schedule again with {name}={asked}"
    )
