"""Base paths: the one spelling of each, and which are refused."""

from __future__ import annotations

import re

from airflow_hudi_maint.core.errors import InvalidSettingError

_LOCAL_SCHEME = re.compile(r"^(?:file|local):(?://(?:localhost(?=/))?)?")
_HADOOPS_S3 = re.compile(r"^s3[an]://")
_PASSWORD_IN_URL = re.compile(r"\w[\w+.-]*://[^/?#@]*:[^/?#]*@")
_NOTHING_BETWEEN = re.compile(r"/+(?:\./+)*(?:\.$)?")


def plain_path(url: str) -> str:
    """The one spelling of a path or URL: a local one without scheme, ``s3://`` for all of S3, no slash at the end.

    >>> [plain_path(url) for url in ("/lake/t/", "file:///lake/./t", "file:/lake//t", "s3://lake/t/", "s3a://lake/t")]
    ['/lake/t', '/lake/t', '/lake/t', 's3://lake/t', 's3://lake/t']
    """
    local = _HADOOPS_S3.sub("s3://", _LOCAL_SCHEME.sub("", url, count=1), count=1)
    if "://" not in local:
        local = _NOTHING_BETWEEN.sub("/", local)
    return local if local.endswith("://") else local.rstrip("/") or local


def checked_root(url: str) -> str:
    """The plain path of a root.

    Raises InvalidSettingError for an empty one, a relative one, one with ``..`` (behind a link that is another place
    than it looks, and two spellings of a table would be two tables), and a URL with a password in it.
    """
    if not url:
        raise InvalidSettingError(
            "The base path is empty; give the table's base path, for example /lake/db/table or s3://lake/db/table"
        )
    if _PASSWORD_IN_URL.match(url):
        raise InvalidSettingError(
            f"The URL at {url.partition('://')[0]}://…@{url.rpartition('@')[2]} holds a password, and base paths stand "
            "in plans and logs; give the password in storage_options or by a connection (storage_conn_id)"
        )
    root = plain_path(url)
    if "://" not in root and not root.startswith("/"):
        raise InvalidSettingError(
            f"{url!r} is a relative path, which means another place in each process; give an absolute path or a URL"
        )
    if "://" not in root and ".." in root.split("/"):
        raise InvalidSettingError(f"{url!r} has '..' in it, so that one table has several names; give the path itself")
    return root


def is_below(url: str, *, root: str) -> bool:
    """Whether a path or URL is a root or lies below it.

    >>> is_below("/lake/t/docs", root="/lake/t"), is_below("/lake/t2", root="/lake/t")
    (True, False)
    """
    return f"{plain_path(url)}/".startswith(f"{plain_path(root)}/")
