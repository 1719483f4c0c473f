"""A table on S3: Spark gets the access that Python has, and nobody else gets to see it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_hudi_maint.core.engines.class_path import resolve_jars
from airflow_hudi_maint.core.engines.java import JavaInstallation
from airflow_hudi_maint.core.engines.pyspark_install import PysparkInstallation
from airflow_hudi_maint.core.engines.s3a import connector_packages, s3_access
from airflow_hudi_maint.core.errors import BundleError
from tests.unit.core.engines.conftest import request as job_request
from tests.waiting import eventually

if TYPE_CHECKING:
    from tests.unit.core.engines.conftest import FakeJobs

SECRET = "hush-hush-hush"  # noqa: S105
KEYS = {"key": "AKIA-1", "secret": SECRET}


def settings(options: dict[str, object], **spark_conf: str) -> dict[str, str]:
    """The settings without the beginning that all have."""
    given = {name.replace("__", "."): value for name, value in spark_conf.items()}
    found = s3_access(options, spark_conf=given).settings
    return {name.removeprefix("spark.hadoop.fs.s3a."): value for name, value in found.items()}


def install(root: Path, *, hadoop: str = "3.3.4") -> PysparkInstallation:
    (root / "jars").mkdir(parents=True)
    (root / "jars" / f"hadoop-client-api-{hadoop}.jar").touch()
    return PysparkInstallation(home=root, version="3.5.9")


def test_keys_a_server_and_a_region_cross_to_hadoop() -> None:
    """Few servers but Amazon's know buckets as host names, so the path has the bucket's name there."""
    options = {**KEYS, "endpoint_url": "http://minio:9000", "client_kwargs": {"region_name": "eu-central-1"}}
    assert settings(options) == {
        "access.key": "AKIA-1",
        "secret.key": SECRET,
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
        "endpoint": "http://minio:9000",
        "endpoint.region": "eu-central-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
    }


def test_keys_of_a_session_have_their_own_provider() -> None:
    """Without it Hadoop would leave the token out, and Amazon would refuse the keys."""
    found = settings({**KEYS, "token": "t"})
    assert found["session.token"] == "t"
    assert found["aws.credentials.provider"].endswith(".TemporaryAWSCredentialsProvider")


def test_keys_may_stand_where_botocore_has_them() -> None:
    """s3fs takes them in client_kwargs, too."""
    found = settings({"client_kwargs": {"aws_access_key_id": "a", "aws_secret_access_key": "b"}})
    assert (found["access.key"], found["secret.key"]) == ("a", "b")


def test_public_buckets_are_read_without_credentials() -> None:
    """Keys beside ``anon`` are not used by s3fs, nor by Spark."""
    assert settings({**KEYS, "anon": True}) == {
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    }


def test_a_profile_is_told_by_the_environment() -> None:
    """The SDK's provider of profiles knows no other way."""
    access = s3_access({"profile": "lake"})
    assert access.environment == {"AWS_PROFILE": "lake"}
    assert "Profile" in access.settings["spark.hadoop.fs.s3a.aws.credentials.provider"]


def test_without_options_hadoop_looks_where_it_always_does() -> None:
    """The environment, then the machine's role."""
    assert settings({}) == {}


def test_amazons_own_buckets_are_host_names() -> None:
    """Unless the options ask for paths."""
    amazon: dict[str, object] = {"endpoint_url": "https://s3.eu-central-1.amazonaws.com"}
    assert settings(amazon) == {"endpoint": "https://s3.eu-central-1.amazonaws.com"}
    assert settings({**amazon, "config_kwargs": {"s3": {"addressing_style": "path"}}})["path.style.access"] == "true"


def test_a_server_without_a_scheme_may_be_asked_in_plain() -> None:
    """As ``use_ssl`` of s3fs has it."""
    assert settings({"endpoint_url": "minio:9000", "use_ssl": False})["connection.ssl.enabled"] == "false"


def test_what_spark_conf_says_counts() -> None:
    """Credentials as a whole: a key of one place with a secret of another would open nothing."""
    own = {"spark__hadoop__fs__s3a__access__key": "mine", "spark__hadoop__fs__s3a__endpoint": "other:1"}
    assert settings({**KEYS, "endpoint_url": "https://minio:9000"}, **own) == {"path.style.access": "true"}


def test_no_secret_is_in_a_repr() -> None:
    """Neither of the settings nor of the environment."""
    assert SECRET not in repr(s3_access(dict(KEYS)))


def test_the_connector_has_the_version_of_sparks_hadoop(tmp_path: Path) -> None:
    """Another version fails in the middle of a job with NoSuchMethodError."""
    assert connector_packages(pyspark=install(tmp_path)) == (
        "org.apache.hadoop:hadoop-aws:3.3.4",
        "com.amazonaws:aws-java-sdk-bundle:1.12.262",
    )


@pytest.mark.parametrize(
    "spark_conf", [{"spark.jars": "/x/hadoop-aws-3.3.4.jar"}, {"spark.driver.extraClassPath": "/x/hadoop-aws.jar"}]
)
def test_a_connector_that_is_there_is_enough(tmp_path: Path, spark_conf: dict[str, str]) -> None:
    """Named in a setting, among the packages, or in Spark's own folder."""
    pyspark = install(tmp_path / "a")
    assert connector_packages(pyspark=pyspark, spark_conf=spark_conf) == ()
    assert connector_packages(pyspark=pyspark, packages=["org.apache.hadoop:hadoop-aws:3.3.6"]) == ()
    (pyspark.jars / "hadoop-aws-3.3.4.jar").touch()
    assert connector_packages(pyspark=pyspark) == ()


def test_an_unknown_hadoop_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """Guessing the SDK would fail in the middle of a job."""
    with pytest.raises(BundleError, match=r"comes with Hadoop 3\.4\.1.*Name both in packages"):
        connector_packages(pyspark=install(tmp_path, hadoop="3.4.1"))


def test_jars_are_the_bundle_the_packages_and_the_connector(tmp_path: Path) -> None:
    """Taken from the cache, where they were once fetched to; a table on a disk gets no connector."""
    cache = tmp_path / "cache" / "jars"
    cache.mkdir(parents=True)
    names = ("hudi-spark3.5-bundle_2.12-1.2.0.jar", "more-1.0.jar", "hadoop-aws-3.3.4.jar")
    for name in (*names, "aws-java-sdk-bundle-1.12.262.jar"):
        (cache / name).touch()

    def jars(path: str) -> list[str]:
        found = resolve_jars(
            "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0",
            spark_path=path,
            packages=["org.example:more:1.0"],
            spark_conf={},
            java=JavaInstallation(home=tmp_path, major=17, source="test"),
            pyspark=pyspark,
            cache_dir=tmp_path / "cache",
            repositories=["file:///nowhere"],
        )
        return [jar.name for jar in found]

    pyspark = install(tmp_path / "spark")
    assert jars("s3a://lake/trips") == [*names, "aws-java-sdk-bundle-1.12.262.jar"]
    assert jars("/lake/trips") == [*names[:2]]


def test_credentials_reach_spark_by_the_properties_file_alone(jobs: FakeJobs) -> None:
    """Of mode 0600; the command line and the request have none of them."""
    jobs.script(
        "report(rows=[{'request': Path(sys.argv[1]).read_text(), 'command': Path('/proc/self/cmdline').read_text(),"
        " 'properties': (here / 'spark.properties').read_text()}])"
    )
    engine = jobs.s3_engine(storage_options=dict(KEYS))
    handle = engine.submit(job_request("s3://lake/trips"))
    jobs.handles.append(handle)
    assert eventually(lambda: engine.status(handle).ended)
    report = engine.report(handle)
    assert report is not None
    row = report.rows[0]

    assert f"spark.hadoop.fs.s3a.secret.key={SECRET}\n" in str(row["properties"])
    assert "hadoop-aws-3.3.4.jar" in str(row["properties"])
    assert SECRET not in f"{row['request']}{row['command']}{engine!r}"
