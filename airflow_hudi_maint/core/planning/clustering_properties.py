"""Settings of clustering as Hudi spells them: a properties file's keys to the settings of a plan, and what is left.

Hudi's own clustering job takes such a file (``--props``). Source: ``HoodieClusteringConfig`` of 0.15.0 to 1.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.plan import ExecutionStrategy, Layout
from airflow_hudi_maint.core.model.secrets import redacted, secrets_in

STRATEGY = "hoodie.clustering.plan.strategy"
SORT_COLUMNS_KEY = f"{STRATEGY}.sort.columns"
TARGET_BYTES_KEY = f"{STRATEGY}.target.file.max.bytes"
SMALL_BYTES_KEY = f"{STRATEGY}.small.file.limit"
LAYOUT_KEY = "hoodie.layout.optimize.strategy"
EXECUTION_KEY = "hoodie.clustering.execution.strategy.class"
MAX_PARALLELISM_KEY = "hoodie.clustering.max.parallelism"
READ_PARALLELISM_KEY = "hoodie.clustering.group.read.parallelism"

_NUMBERS = {
    SMALL_BYTES_KEY: "small_file_bytes",
    TARGET_BYTES_KEY: "target_file_bytes",
    f"{STRATEGY}.max.bytes.per.group": "max_group_bytes",
    f"{STRATEGY}.max.num.groups": "max_groups",
}
_OTHER_NUMBERS = (MAX_PARALLELISM_KEY, READ_PARALLELISM_KEY, "hoodie.layout.optimize.build.curve.sample.size")
_OF_A_WRITER = frozenset(
    {
        "hoodie.clustering.inline",
        "hoodie.clustering.inline.max.commits",
        "hoodie.clustering.schedule.inline",
        "hoodie.clustering.async.enabled",
        "hoodie.clustering.async.max.commits",
        "hoodie.layout.optimize.enable",
        # What is planned is chosen before Hudi is asked, and not from the partitions of the last commits.
        "hoodie.table.services.incremental.enabled",
        f"{STRATEGY}.single.group.clustering.enabled",
    }
)
_SELECTION = (
    f"{STRATEGY}.class",
    "hoodie.clustering.plan.partition.filter.mode",
    f"{STRATEGY}.partition.",
    f"{STRATEGY}.cluster.",
    f"{STRATEGY}.daybased.",
)
_ALLOWED_STRATEGIES = (
    "",
    "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy",
)
_OF_THE_TABLE = (
    "hoodie.table.",
    "hoodie.base.path",
    "hoodie.write.table.version",
    "hoodie.write.auto.upgrade",
    "hoodie.datasource.write.operation",
    "hoodie.datasource.write.partitions.to.delete",
    "hoodie.metadata.index.drop",
)
"""What would make another table of it, or another job. What contradicts the table at hand is refused later."""

_KNOWN = (*_NUMBERS, *_OTHER_NUMBERS, *_OF_A_WRITER, SORT_COLUMNS_KEY, EXECUTION_KEY)
_NEAR = 0.95
"""How alike a key has to be to one that is known to be a slip: a letter or two, and no key of a later release."""


class PropertiesSettings(NamedTuple):
    """What a properties file says: fields of ClusteringSettings by name, and Hudi options that go with the job."""

    settings: dict[str, object]
    options: dict[str, str]


def clustering_settings_from_properties(
    properties: Mapping[str, str], *, name: str, lines: Mapping[str, int] | None = None
) -> PropertiesSettings:
    """Turn Hudi's keys into the settings of a plan; other ``hoodie.`` keys go with the job as they are.

    ``name`` is the file's and ``lines`` says on which line of it a key stands: both only for errors. Keys that drive a
    writer's own clustering (inline, async) say nothing to a job and are left out: :func:`ignored_keys` names them.

    Raises InvalidSettingError, with key, value, file and line, for a value of the wrong kind, for a key that is no
    option of Hudi's, and for one that would change the table or is the job's own.

    >>> text = {"hoodie.clustering.plan.strategy.sort.columns": "city, at", "hoodie.clustering.max.parallelism": "4"}
    >>> clustering_settings_from_properties(text, name="job.properties")
    PropertiesSettings(settings={'sort_columns': ('city', 'at')}, options={'hoodie.clustering.max.parallelism': '4'})
    """
    file = _File(name=name, lines=lines or {})
    settings: dict[str, object] = {}
    options: dict[str, str] = {}
    for key, value in properties.items():
        text = value.strip()
        if key in _OF_A_WRITER:
            continue
        if key in _NUMBERS:
            settings[_NUMBERS[key]] = file.number(key, text)
        elif key in _READERS:
            field, read = _READERS[key]
            settings[field] = read(file, key, text)
        else:
            _check_option(file, key, text)
            options[key] = text
    return PropertiesSettings(settings=settings, options=options)


def execution_strategy_of(class_name: str) -> ExecutionStrategy | None:
    """The execution strategy that Hudi's class of this name is; None for any other class."""
    return next((one for one in ExecutionStrategy if one.class_name == class_name), None)


def ignored_keys(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that are for a writer that clusters by itself, and mean nothing to a job that does nothing else."""
    return tuple(sorted(_OF_A_WRITER.intersection(properties)))


class _File(NamedTuple):
    """Where a key stands, for messages."""

    name: str
    lines: Mapping[str, int]

    def wrong(self, key: str, value: str, *, why: str) -> InvalidSettingError:
        where = f", line {self.lines[key]}" if key in self.lines else ""
        shown = redacted(value, secrets=secrets_in({key: value}))
        return InvalidSettingError(f"{self.name}{where}: {key}={shown} {why}")

    def number(self, key: str, value: str) -> int:
        if not (value.isascii() and value.isdecimal()) or int(value) < 1:
            raise self.wrong(key, value, why="is no whole number of at least 1; sizes are in bytes, without a unit")
        return int(value)


def _columns(file: _File, key: str, value: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in value.split(",")) if value else ()
    if any(not one for one in names) or len(set(names)) != len(names):
        raise file.wrong(key, value, why="is no list of different columns, apart by commas")
    return names


def _layout(file: _File, key: str, value: str) -> Layout:
    known = {str(one): one for one in Layout}
    text = value.lower().replace("-", "")
    if text not in known:
        raise file.wrong(key, value, why=f"is unknown; known are {', '.join(known)}")
    return known[text]


def _strategy(file: _File, key: str, value: str) -> ExecutionStrategy:
    found = execution_strategy_of(value)
    if found is None:
        known = ", ".join(one.class_name for one in ExecutionStrategy)
        raise file.wrong(key, value, why=f"is unknown; known are {known}")
    return found


_READERS: Mapping[str, tuple[str, Callable[[_File, str, str], object]]] = {
    SORT_COLUMNS_KEY: ("sort_columns", _columns),
    LAYOUT_KEY: ("layout", _layout),
    EXECUTION_KEY: ("execution_strategy", _strategy),
}


def _check_option(file: _File, key: str, value: str) -> None:
    if key == "include":
        raise file.wrong(key, value, why="names another file, which is not followed; put all settings into one file")
    if not key.startswith("hoodie."):
        raise file.wrong(key, value, why="is no option of Hudi's; Spark's settings belong to the connection")
    if key.startswith(_SELECTION) and not (key == f"{STRATEGY}.class" and value in _ALLOWED_STRATEGIES):
        why = "selects partitions, which the arguments of the task or command do; leave it out of the file"
        raise file.wrong(key, value, why=why)
    if key.startswith(_OF_THE_TABLE):
        why = "is set by the job itself, from the table; leave it out of the file"
        raise file.wrong(key, value, why=why)
    if key in _OTHER_NUMBERS:
        file.number(key, value)
    elif key.startswith("hoodie.clustering.") and (near := get_close_matches(key, _KNOWN, n=1, cutoff=_NEAR)):
        raise file.wrong(key, value, why=f"is no option; did you mean {near[0]}?")
