"""From the name of a strategy, or the import path of a class, and its options to the strategy."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from types import ModuleType

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.planning.clustering_benefit import Benefit
from airflow_hudi_maint.core.planning.clustering_strategies import (
    Cold,
    DayRolling,
    Largest,
    RecentDays,
    SelectedPartitions,
    SizeBased,
)
from airflow_hudi_maint.core.planning.clustering_strategy import ClusteringStrategy
from airflow_hudi_maint.core.planning.wording import some_of

DEFAULT_STRATEGY = "size_based"
STRATEGIES: Mapping[str, type[SizeBased]] = {
    DEFAULT_STRATEGY: SizeBased,
    "recent_days": RecentDays,
    "selected_partitions": SelectedPartitions,
    "day_rolling": DayRolling,
    "largest": Largest,
    "cold": Cold,
    "benefit": Benefit,
}
"""The strategies that come with this package, by name."""

_FIELDS = {"max_bytes": "budget_bytes"}
"""Options whose field has another name."""


def load_strategy(name: str, options: Mapping[str, object]) -> ClusteringStrategy:
    """Make a strategy by its name, or a class of yours by its import path (``package.module.Class``).

    Options of a strategy of ours may be texts of the numbers and lists that they stand for; a class of yours is called
    with them as they are. Importing runs the module: name only what you trust.

    Raises InvalidSettingError that names what there is: strategies, options, classes.

    >>> load_strategy("recent_days", {"lookback": "3"})
    RecentDays(lookback=3, skip_from_latest=0)
    """
    ours = STRATEGIES.get(name)
    if ours is not None:
        return _made(name, ours, options=options)
    if "." not in name and ":" not in name:
        msg = (
            f"strategy={name!r} is unknown; known are {', '.join(STRATEGIES)}, and the import path of a class of yours "
            "such as my_package.my_module.MyStrategy"
        )
        raise InvalidSettingError(msg)
    return _imported(name, options=options)


def _made(name: str, kind: type[SizeBased], *, options: Mapping[str, object]) -> ClusteringStrategy:
    unknown = sorted(set(options) - set(kind.OPTIONS))
    if unknown:
        known = f"it takes {', '.join(kind.OPTIONS)}" if kind.OPTIONS else "it takes none"
        raise InvalidSettingError(f"strategy {name} has no option {', '.join(map(repr, unknown))}; {known}")
    given = {
        _FIELDS.get(option, option): kind.OPTIONS[option](f"strategy {name}: {option}", value)
        for option, value in options.items()
        if value is not None
    }
    if kind is Cold and "idle_days" not in given:
        raise InvalidSettingError("strategy cold needs the option idle_days: for how long data has not changed")
    return kind(**given)


def _imported(path: str, *, options: Mapping[str, object]) -> ClusteringStrategy:
    module_name, _, class_name = path.replace(":", ".").rpartition(".")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever a module of yours raises while it is imported
        said = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise InvalidSettingError(f"strategy={path!r} cannot be imported: {said}") from error
    kind = getattr(module, class_name, None)
    if not inspect.isclass(kind):
        raise InvalidSettingError(
            f"strategy={path!r} is no class: module {module_name} has {_classes(module) or 'no class'}"
        )
    try:
        strategy = kind(**options)
    except (TypeError, ValueError) as error:
        signature = ", ".join(inspect.signature(kind).parameters) or "no options"
        raise InvalidSettingError(
            f"strategy={path!r} cannot be made with {dict(options)!r}: {error}; it takes {signature}"
        ) from error
    if not isinstance(strategy, ClusteringStrategy):
        wanted = ("needs_history", "max_bytes", "exclude", "rank")
        missing = ", ".join(one for one in wanted if not hasattr(strategy, one))
        raise InvalidSettingError(
            f"strategy={path!r} is no strategy of clustering: it lacks {missing}; "
            f"derive it from {SizeBased.__module__}.{SizeBased.__name__}"
        )
    return strategy


def _classes(module: ModuleType) -> str:
    own = [name for name, one in vars(module).items() if inspect.isclass(one) and one.__module__ == module.__name__]
    return some_of(own) if own else ""
