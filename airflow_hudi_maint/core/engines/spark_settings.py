"""The settings of a Spark session that maintains Hudi tables, and the file that carries them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_hudi_maint.core.errors import InvalidSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CLASS_PATH = "spark.driver.extraClassPath"
EXTENSIONS = "spark.sql.extensions"

# fsspec's names for the same storage, where Hadoop has another one.
_SPARK_SCHEMES = {"s3": "s3a", "s3n": "s3a", "gcs": "gs", "local": "file"}
# Storage of this Python process, which a JVM cannot see.
_PROCESS_SCHEMES = ("memory", "reference", "zip", "dir", "github", "simplecache", "filecache", "blockcache")

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex{12}
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.hudiconf.name = org.apache.hudi.common.config.DFSPropertiesConfiguration
logger.hudiconf.level = error
logger.metrics.name = org.apache.hadoop.metrics2.impl.MetricsConfig
logger.metrics.level = error
"""
"""Warnings and worse, on standard error: progress comes from Spark's status, not from its log."""


def spark_path(base_path: str) -> str:
    """Return a base path as Spark reads it.

    >>> spark_path("s3://lake/trips")
    's3a://lake/trips'
    >>> spark_path("/lake/trips")
    '/lake/trips'

    Raises:
        InvalidSettingError: The path is one that only this Python process can see.
    """
    scheme, separator, rest = base_path.partition("://")
    if not separator:
        return base_path
    if scheme in _PROCESS_SCHEMES or "::" in base_path:
        raise InvalidSettingError(
            f"Spark cannot read {base_path!r}: {scheme}:// exists in this Python process only. "
            "Use a path on a disk or in an object store."
        )
    return f"{_SPARK_SCHEMES.get(scheme, scheme)}://{rest}"


def session_settings(
    *, master: str, jars: Sequence[Path], driver_memory: str, application_name: str, given: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole configuration of a session; ``given`` wins, and adds to lists that Hudi has to be on.

    ``jars`` are those of the class path, Hudi's bundle first.

    The time zone is left alone on purpose: Hudi names its instants in the zone of the JVM, and the table's other
    writers use theirs.
    """
    settings = {
        "spark.master": master,
        "spark.app.name": application_name,
        "spark.driver.memory": driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    }
    if is_local(master):
        settings["spark.driver.host"] = "127.0.0.1"
    else:
        settings["spark.jars"] = ",".join(map(str, jars))
    settings.update(given)
    # On the class path, not in spark.jars: Spark's own loader of jars made Hudi 1.0.2 fail with a ClassCastException.
    settings[CLASS_PATH] = _joined(*map(str, jars), more=given.get(CLASS_PATH), separator=":")
    hudi_extension = "org.apache.spark.sql.hudi.HoodieSparkSessionExtension"
    settings[EXTENSIONS] = _joined(hudi_extension, more=given.get(EXTENSIONS), separator=",")
    return settings


def is_local(master: str) -> bool:
    """Tell whether this master runs everything in one process."""
    return master == "local" or master.startswith("local[")


def properties_text(settings: Mapping[str, str]) -> str:
    """Return settings in the format of Java's properties files, readable in any encoding."""
    return "".join(
        f"{_escaped(name, key=True)}={_escaped(value, key=False)}\n" for name, value in sorted(settings.items())
    )


def _joined(*first: str, more: str | None, separator: str) -> str:
    return separator.join(dict.fromkeys((*first, *filter(None, (more or "").split(separator)))))


def _escaped(text: str, *, key: bool) -> str:
    """Escape a key or a value; blanks at a value's start would be dropped, and anywhere in a key would end it."""
    named = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    special = " =:#!" if key else ""
    characters = []
    for index, character in enumerate(text):
        if character in named:
            characters.append(named[character])
        elif character in special or (character == " " and index == 0):
            characters.append("\\" + character)
        elif " " <= character <= "~":
            characters.append(character)
        else:
            units = character.encode("utf-16-be")
            characters.append("".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)))
    return "".join(characters)
