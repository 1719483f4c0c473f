"""A pipeline of the user's whose table lies on an S3 server."""

from __future__ import annotations

from tests.s3_server import S3Server
from tests.spark.writer import HudiWriter

CONNECTOR = ("org.apache.hadoop:hadoop-aws:3.3.4", "com.amazonaws:aws-java-sdk-bundle:1.12.262")


def s3_writer(hudi_version: str, *, s3: S3Server, key_id: str) -> HudiWriter:
    """Start a writer of this release that reaches the server through s3a, as this key."""
    access = {
        "access.key": key_id,
        "secret.key": "the writer's own",
        "endpoint": s3.url,
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }
    settings = {f"spark.hadoop.fs.s3a.{name}": value for name, value in access.items()}
    return HudiWriter(hudi_version, packages=CONNECTOR, settings=settings)
