"""What Airflow is told of this provider.

Airflow calls this while it builds its own configuration, so nothing here, nor in the package above, imports Airflow.
"""

from __future__ import annotations

from typing import Any

_PACKAGE = "airflow_hudi_maint"
_INTEGRATION = "Apache Hudi"
_OPTIONAL_TEXT = {"type": ["string", "null"]}
_OPTIONAL_OBJECT = {"type": ["object", "null"]}


def get_provider_info() -> dict[str, Any]:
    """Return the provider's metadata, in the form of Airflow's ``provider_info.schema.json``."""
    return {
        "package-name": "airflow-hudi-maint",
        "name": "Apache Hudi maintenance",
        "description": (
            "Keep `Apache Hudi <https://hudi.apache.org/>`__ tables healthy: partition statistics, partition expiry, "
            "clustering and small-file compaction."
        ),
        "integrations": [
            {"integration-name": _INTEGRATION, "external-doc-url": "https://hudi.apache.org/", "tags": ["apache"]}
        ],
        "operators": _modules(
            "operators",
            "statistics",
            "health",
            "diagnosis",
            "ttl",
            "expiry",
            "approval",
            "undo",
            "clean",
            "clustering",
            "cluster",
            "compaction",
            "resolve",
            "small_files",
            "merge",
            "report",
        ),
        "sensors": _modules("sensors", "commit", "idle", "undo", "pending", "small_files"),
        "hooks": _modules("hooks", "hudi"),
        "triggers": _modules("triggers", "job", "small_files", "timeline"),
        "connection-types": [_connection_type()],
        "extra-links": [f"{_PACKAGE}.links.report.HudiReportLink"],
        "cli": [f"{_PACKAGE}.cli.definition.get_hudi_cli_commands"],
    }


def _modules(kind: str, *nouns: str) -> list[dict[str, Any]]:
    return [{"integration-name": _INTEGRATION, "python-modules": [f"{_PACKAGE}.{kind}.{noun}" for noun in nouns]}]


def _connection_type() -> dict[str, Any]:
    return {
        "connection-type": "hudi",
        "hook-class-name": f"{_PACKAGE}.hooks.hudi.HudiHook",
        "hook-name": "Apache Hudi table",
        "ui-field-behaviour": {
            "hidden-fields": ["schema", "port", "login", "password"],
            "relabeling": {"host": "Base path"},
            "placeholders": {
                "host": "s3://lake/db/flights",
                "storage_conn_id": "aws_default",
                "storage_options": '{"key": "…", "secret": "…", "client_kwargs": {"region_name": "eu-central-1"}}',
                "storage_concurrency": "16",
                "documents_location": "<base path>/.hoodie/.airflow_hudi_maint",
                "timeline_zone": "Europe/Berlin",
                "master": "local[*]",
                "driver_memory": "2g",
                "spark_conf": '{"spark.executor.memory": "4g"}',
                "write_options": '{"hoodie.write.lock.provider": "…"}',
            },
        },
        "conn-fields": {**_storage_fields(), **_engine_fields()},
    }


def _storage_fields() -> dict[str, Any]:
    return {
        "storage_conn_id": _field(
            "Storage connection",
            _OPTIONAL_TEXT,
            "Id of the connection with the storage's credentials: aws, google_cloud_platform, wasb, adls or webhdfs.",
        ),
        "storage_options": _field(
            "Storage options (JSON)",
            _OPTIONAL_OBJECT,
            "Given to fsspec as they are, over those of the storage connection. Credentials in them are masked.",
        ),
        "storage_concurrency": _field(
            "Storage concurrency",
            {"type": ["integer", "null"], "minimum": 1, "maximum": 256},
            "Requests to remote storage at a time; empty for 16.",
        ),
        "documents_location": _field(
            "Documents location",
            _OPTIONAL_TEXT,
            "Where statistics, plans and reports go; empty for a folder of our own below the table's .hoodie.",
        ),
        "timeline_zone": _field(
            "Timeline zone",
            _OPTIONAL_TEXT,
            "IANA name of the zone that writers of a table with a LOCAL timeline stamp with; empty for this machine's.",
        ),
    }


def _engine_fields() -> dict[str, Any]:
    return {
        "engine": _field(
            "Engine",
            {"type": "string", "enum": ["local", "spark_submit", "livy"], "default": "local"},
            "How Spark jobs run: in a process beside the task, on a cluster by spark-submit, or by Livy.",
        ),
        "spark_conn_id": _field(
            "Spark connection", _OPTIONAL_TEXT, "Id of the connection of type spark, for the engine spark_submit."
        ),
        "livy_conn_id": _field("Livy connection", _OPTIONAL_TEXT, "Id of the connection of type livy."),
        "livy_auth_type": _field(
            "Livy authentication", _OPTIONAL_TEXT, "Import path of a class of requests; empty for login and password."
        ),
        "spark_home": _field("SPARK_HOME", _OPTIONAL_TEXT, "Installation of Spark; empty for that of pyspark."),
        "rest_url": _field(
            "REST address", _OPTIONAL_TEXT, "Of the master's REST server or of YARN's resource manager (cluster mode)."
        ),
        "ui_url": _field("Master's page", _OPTIONAL_TEXT, "Address of the master's web page, if not on port 8080."),
        "code_url": _field(
            "Jobs on the cluster", _OPTIONAL_TEXT, "Where the cluster has jobs.zip; empty to leave it by the table."
        ),
        "bundle": _field(
            "Hudi bundle",
            _OPTIONAL_TEXT,
            "Maven coordinate or path of a jar; empty for the default of this release.",
        ),
        "packages": _field(
            "Packages (JSON)",
            {"type": ["array", "null"], "items": {"type": "string"}},
            "Maven coordinates or paths of more jars; what S3 needs comes by itself.",
        ),
        "repositories": _field(
            "Maven repositories (JSON)",
            {"type": ["array", "null"], "items": {"type": "string"}},
            "Roots to fetch the bundle from, in order; empty for Maven Central.",
        ),
        "cache_dir": _field("Bundle cache", _OPTIONAL_TEXT, "Folder that keeps the bundle between runs."),
        "work_dir": _field(
            "Work folder",
            _OPTIONAL_TEXT,
            "Folder for the log and the spilled data of a job while it runs; empty for the temporary one.",
        ),
        "master": _field("Spark master", _OPTIONAL_TEXT, "local[*] unless you say otherwise."),
        "driver_memory": _field("Driver memory", _OPTIONAL_TEXT, "Memory of the Spark driver, such as 4g."),
        "spark_conf": _field("Spark configuration (JSON)", _OPTIONAL_OBJECT, "Names and values for the Spark session."),
        "python": _field("Python", _OPTIONAL_TEXT, "Python that has pyspark 3.5; empty for the worker's own."),
        "java_home": _field("JAVA_HOME", _OPTIONAL_TEXT, "Java for Spark; empty to look for one."),
        "write_options": _field(
            "Hudi write options (JSON)", _OPTIONAL_OBJECT, "Given to every Hudi call, such as those of a lock provider."
        ),
    }


def _field(label: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"label": label, "schema": schema, "description": description}
