"""What the session is told, and how paths and settings are written for the JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_hudi_maint.core.engines.spark_settings import is_local, properties_text, session_settings, spark_path
from airflow_hudi_maint.core.errors import InvalidSettingError

JAR = Path("/jars/hudi.jar")


def settings(master: str = "local[2]", **given: str) -> dict[str, str]:
    return session_settings(master=master, jars=[JAR], driver_memory="1g", application_name="a", given=given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/lake/trips", "/lake/trips"),
        ("file:///lake/trips", "file:///lake/trips"),
        ("local:///lake/trips", "file:///lake/trips"),
        ("s3://lake/trips", "s3a://lake/trips"),
        ("s3a://lake/trips", "s3a://lake/trips"),
        ("gcs://lake/trips", "gs://lake/trips"),
        ("gs://lake/trips", "gs://lake/trips"),
        ("abfs://lake@account.example/trips", "abfs://lake@account.example/trips"),
        ("hdfs://name:8020/trips", "hdfs://name:8020/trips"),
    ],
)
def test_a_base_path_gets_the_name_that_hadoop_has_for_its_storage(given: str, expected: str) -> None:
    """Only the scheme changes, and only where Hadoop's differs from fsspec's."""
    assert spark_path(given) == expected


@pytest.mark.parametrize("path", ["memory://trips", "simplecache::s3://lake/trips", "zip://trips::file:///a.zip"])
def test_a_path_that_no_jvm_can_see_is_refused(path: str) -> None:
    """The message names the path."""
    with pytest.raises(InvalidSettingError, match="trips"):
        spark_path(path)


def test_settings_given_win_except_over_what_hudi_has_to_be_on() -> None:
    """The class path and the extensions are lists: what was given is added to Hudi's own part."""
    made = settings(
        **{
            "spark.driver.memory": "8g",
            "spark.driver.extraClassPath": "/jars/s3.jar",
            "spark.sql.extensions": "org.other.Extensions",
        }
    )
    assert made["spark.driver.memory"] == "8g"
    assert made["spark.driver.extraClassPath"] == "/jars/hudi.jar:/jars/s3.jar"
    assert made["spark.sql.extensions"] == "org.apache.spark.sql.hudi.HoodieSparkSessionExtension,org.other.Extensions"


def test_the_time_zone_is_not_touched() -> None:
    """Hudi names instants in the JVM's zone; another zone than the other writers' would put them out of order."""
    assert not [name for name, value in settings().items() if "timeZone" in name or "user.timezone" in value]


def test_executors_elsewhere_get_the_bundle_too() -> None:
    """The class path is the driver's alone; a master that is not local ships the jar."""
    assert "spark.jars" not in settings()
    assert settings("spark://master:7077")["spark.jars"] == "/jars/hudi.jar"
    assert [is_local(master) for master in ("local", "local[*]", "local-cluster[2,1,1024]", "yarn")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_properties_file_carries_any_value() -> None:
    """Blanks, equal signs, line ends, backslashes and letters beyond ASCII arrive as they were."""
    text = properties_text({"a": " x = y#z", "b c": "C:\\new\nline", "d": "ü😀"})
    assert text == "a=\\ x = y#z\nb\\ c=C:\\\\new\\nline\nd=\\u00fc\\ud83d\\ude00\n"
