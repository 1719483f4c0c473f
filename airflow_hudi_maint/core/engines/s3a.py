"""Tables on S3: what Spark needs to read with Hadoop's ``s3a`` what Python reads with fsspec.

PyPI's pyspark has no connector for object stores, so Hadoop's own is added, in the version of Spark's Hadoop, with the
one AWS SDK that it was built for. Options that s3fs takes become Hadoop's settings of the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from airflow_hudi_maint.core.errors import BundleError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation

_PREFIX = "spark.hadoop.fs.s3a."
_CONNECTOR = "hadoop-aws"
# The SDK in the POM of the connector (aws-java-sdk.version of hadoop-project). All of Spark 3.5 has this Hadoop.
_SDK_OF_HADOOP = {"3.3.4": "1.12.262"}
_CREDENTIALS = ("access.key", "secret.key", "session.token", "aws.credentials.provider")
_ASSEMBLY = "org.apache.hadoop.fs.s3a."


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Access:
    """Spark's settings and the environment of the driver; both may hold credentials and stay out of the ``repr``."""

    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


def is_on_s3(spark_path: str) -> bool:
    """Tell whether Spark reads this path with s3a."""
    return spark_path.startswith("s3a://")


def connector_packages(
    *, pyspark: PysparkInstallation, packages: Sequence[str] = (), spark_conf: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """Return the coordinates of the connector and its SDK; none when Spark, a package or a setting brings a connector.

    Raises:
        BundleError: Spark comes with a Hadoop whose SDK is not known here; the message says what to give instead.
    """
    named = [*packages, *(value for key, value in (spark_conf or {}).items() if _names_jars(key))]
    if any(_CONNECTOR in one for one in named) or any(pyspark.jars.glob(f"{_CONNECTOR}-*.jar")):
        return ()
    hadoop = _hadoop_version(pyspark)
    sdk = _SDK_OF_HADOOP.get(hadoop)
    if sdk is None:
        raise BundleError(
            f"The table is on S3, and Spark at {pyspark.home} comes with Hadoop {hadoop or 'of an unknown version'}: "
            "which AWS SDK fits is not known here. Name both in packages, for example "
            '["org.apache.hadoop:hadoop-aws:VERSION", "com.amazonaws:aws-java-sdk-bundle:VERSION"]'
        )
    return (f"org.apache.hadoop:{_CONNECTOR}:{hadoop}", f"com.amazonaws:aws-java-sdk-bundle:{sdk}")


def s3_access(options: Mapping[str, object], *, spark_conf: Mapping[str, str] | None = None) -> S3Access:
    """Return what gives Spark the access that s3fs has by these options. What ``spark_conf`` says itself is left out.

    Credentials count as a whole: where ``spark_conf`` has any, none of the options' is used. Without any in either,
    Hadoop looks where it always does: the environment, then the machine's role.

    >>> s3_access({"endpoint_url": "http://127.0.0.1:9000", "anon": True}).settings["spark.hadoop.fs.s3a.endpoint"]
    'http://127.0.0.1:9000'
    """
    given = spark_conf or {}
    client = options.get("client_kwargs")
    client = client if isinstance(client, Mapping) else {}
    settings = _place(options, client)
    environment: dict[str, str] = {}
    if not any(f"{_PREFIX}{one}" in given for one in _CREDENTIALS):
        settings |= _credentials(options, client)
        profile = _text(options.get("profile"))
        if profile and "access.key" not in settings and not options.get("anon"):
            settings["aws.credentials.provider"] = "com.amazonaws.auth.profile.ProfileCredentialsProvider"
            environment["AWS_PROFILE"] = profile  # that provider is told in no other way
    named = {f"{_PREFIX}{name}": value for name, value in settings.items()}
    return S3Access(
        settings={name: value for name, value in named.items() if name not in given}, environment=environment
    )


def _place(options: Mapping[str, object], client: Mapping[str, object]) -> dict[str, str]:
    """Where the buckets are and how they are addressed."""
    settings: dict[str, str] = {}
    endpoint = _text(options.get("endpoint_url")) or _text(client.get("endpoint_url"))
    if endpoint:
        settings["endpoint"] = endpoint
        if not (urlsplit(endpoint).hostname or endpoint).endswith(".amazonaws.com"):
            settings["path.style.access"] = "true"  # few servers but Amazon's answer to bucket.host
    region = _text(client.get("region_name"))
    if region:
        settings["endpoint.region"] = region
    style = _addressing_style(options)
    if style in ("path", "virtual"):
        settings["path.style.access"] = "true" if style == "path" else "false"
    if endpoint.startswith("http://") or (not endpoint.startswith("https://") and _is_off(options, client)):
        settings["connection.ssl.enabled"] = "false"
    return settings


def _is_off(options: Mapping[str, object], client: Mapping[str, object]) -> bool:
    return options.get("use_ssl") is False or client.get("use_ssl") is False


def _addressing_style(options: Mapping[str, object]) -> str:
    config = options.get("config_kwargs")
    s3 = config.get("s3") if isinstance(config, Mapping) else None
    return _text(s3.get("addressing_style")) if isinstance(s3, Mapping) else ""


def _credentials(options: Mapping[str, object], client: Mapping[str, object]) -> dict[str, str]:
    if options.get("anon"):
        return {"aws.credentials.provider": f"{_ASSEMBLY}AnonymousAWSCredentialsProvider"}
    key = _first(options, "key", "username") or _first(client, "aws_access_key_id")
    secret = _first(options, "secret", "password") or _first(client, "aws_secret_access_key")
    token = _first(options, "token") or _first(client, "aws_session_token")
    if not (key and secret):
        return {}
    settings = {"access.key": key, "secret.key": secret}
    provider = "SimpleAWSCredentialsProvider"
    if token:
        settings["session.token"], provider = token, "TemporaryAWSCredentialsProvider"
    return {**settings, "aws.credentials.provider": f"{_ASSEMBLY}{provider}"}


def _first(options: Mapping[str, object], *names: str) -> str:
    return next((text for name in names if (text := _text(options.get(name)))), "")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _names_jars(key: str) -> bool:
    return key == "spark.driver.extraClassPath" or key.startswith("spark.jars")


def _hadoop_version(pyspark: PysparkInstallation) -> str:
    """Return the version of Spark's Hadoop client, as the name of its jar says it; empty without one."""
    names = [path.stem for path in pyspark.jars.glob("hadoop-client-api-*.jar")]
    return names[0].removeprefix("hadoop-client-api-") if names else ""
