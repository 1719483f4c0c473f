"""Read a properties file of settings, as Hudi's own jobs take one, from a path or URL."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_hudi_maint.core.errors import DocumentNotFoundError, InvalidSettingError, StorageError
from airflow_hudi_maint.core.storage.filesystem import Storage
from airflow_hudi_maint.core.storage.java_properties import PropertiesFile


def read_properties_file(location: str, *, storage_options: Mapping[str, object] | None = None) -> PropertiesFile:
    """Read the file at an absolute path or a URL; ``storage_options`` are for fsspec.

    Raises DocumentNotFoundError for a file that is not there, InvalidSettingError for one that is no text of this form,
    and StorageError.
    """
    folder, _, name = location.rpartition("/")
    storage = Storage.open(folder or "/", storage_options=storage_options)
    try:
        text = storage.read_bytes(name).decode("utf-8")
    except FileNotFoundError as error:
        raise DocumentNotFoundError(f"There is no properties file at {location}") from error
    except StorageError as error:
        if not isinstance(error.__cause__, IsADirectoryError):
            raise
        raise InvalidSettingError(f"{location} is a folder; give the path of a properties file") from error
    except UnicodeDecodeError as error:
        raise InvalidSettingError(f"{location} is no UTF-8 text ({error}); save it as UTF-8") from error
    return PropertiesFile.parse(text, name=location)
