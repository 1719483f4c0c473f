"""A properties file as Hudi's clustering job takes one."""

from __future__ import annotations

import pytest

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.plan import ExecutionStrategy, Layout
from airflow_hudi_maint.core.planning.clustering_properties import (
    clustering_settings_from_properties,
    ignored_keys,
)
from airflow_hudi_maint.core.storage.java_properties import PropertiesFile

JOB = """\
# As the documentation of Hudi has it
hoodie.clustering.async.enabled=true
hoodie.clustering.async.max.commits=4
hoodie.clustering.plan.strategy.target.file.max.bytes=1073741824
hoodie.clustering.plan.strategy.small.file.limit=629145600
hoodie.clustering.plan.strategy.max.bytes.per.group = 2147483648
hoodie.clustering.plan.strategy.max.num.groups=12
hoodie.clustering.execution.strategy.class=\\
    org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy
hoodie.clustering.plan.strategy.class=\\
    org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy
hoodie.clustering.plan.strategy.sort.columns=city, at
hoodie.layout.optimize.strategy=Z-ORDER
hoodie.clustering.max.parallelism=4
hoodie.memory.merge.max.size=1073741824
"""


def _read(text: str, name: str = "/conf/job.properties") -> tuple[dict[str, object], dict[str, str]]:
    file = PropertiesFile.parse(text, name=name)
    return clustering_settings_from_properties(file.as_dict(), name=name, lines=file.lines())


def test_hudis_own_file_is_understood() -> None:
    """Known keys become settings, a writer's own are left out, and the others go with the job."""
    settings, options = _read(JOB)

    assert {
        "target_file_bytes": 1024**3,
        "small_file_bytes": 600 * 1024**2,
        "max_group_bytes": 2 * 1024**3,
        "max_groups": 12,
        "execution_strategy": ExecutionStrategy.SORT_AND_SIZE,
        "sort_columns": ("city", "at"),
        "layout": Layout.ZORDER,
    } == settings
    assert {
        "hoodie.clustering.plan.strategy.class": (
            "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"
        ),
        "hoodie.clustering.max.parallelism": "4",
        "hoodie.memory.merge.max.size": "1073741824",
    } == options
    ignored = ignored_keys(PropertiesFile.parse(JOB).as_dict())
    assert ("hoodie.clustering.async.enabled", "hoodie.clustering.async.max.commits") == ignored


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            "hoodie.clustering.plan.strategy.small.file.limit=300m",
            "small.file.limit=300m is no whole number .* in bytes",
        ),
        ("hoodie.clustering.plan.strategy.max.num.groups=0", "max.num.groups=0 is no whole number of at least 1"),
        ("hoodie.clustering.max.parallelism=many", "max.parallelism=many is no whole number"),
        ("hoodie.clustering.plan.strategy.sort.columns=city,,at", "is no list of different columns"),
        ("hoodie.clustering.plan.strategy.sort.columns=city,city", "is no list of different columns"),
        ("hoodie.layout.optimize.strategy=spiral", "=spiral is unknown; known are linear, zorder, hilbert"),
        ("hoodie.clustering.execution.strategy.class=com.me.Mine", "com.me.Mine is unknown; known are org.apache.hudi"),
        ("hoodie.clustering.plan.strategy.partition.selected=day=1", "selects partitions"),
        ("hoodie.clustering.plan.strategy.class=com.me.Mine", "selects partitions"),
        ("hoodie.table.name=trips", "is set by the job itself"),
        ("hoodie.write.auto.upgrade=true", "is set by the job itself"),
        ("spark.executor.memory=4g", "is no option of Hudi's"),
        ("include=base.properties", "names another file, which is not followed"),
    ],
)
def test_an_error_names_file_line_key_and_value(line: str, words: str) -> None:
    """The message is enough to find the line."""
    with pytest.raises(InvalidSettingError, match=rf"/conf/job.properties, line 3: .*{words}"):
        _read(f"# settings\n\n{line}\n")


def test_lines_are_those_of_the_file() -> None:
    """An entry that goes on over several lines begins on its first; of a key that stands twice the last counts."""
    file = PropertiesFile.parse("a=1\\\n  2\r\n# b\nb=3\n\na=4")
    assert {"a": 6, "b": 4} == file.lines()


@pytest.mark.parametrize("key", ["spark.hadoop.fs.s3a.secret.key", "hoodie.table.token", "include.password"])
def test_a_key_that_does_not_belong_there_is_refused_without_its_secret(key: str) -> None:
    """The message stands in the task's log, and people put a job's credentials into such files."""
    with pytest.raises(InvalidSettingError, match=r"job\.properties: .*=\*\*\* ") as raised:
        clustering_settings_from_properties({key: "wJalrXUtn"}, name="job.properties")
    assert "wJalrXUtn" not in str(raised.value)
