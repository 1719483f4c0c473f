"""How Livy is asked: through the hook of Airflow's own Livy provider where that is installed, else by our own client.

The provider's hook does what its users know of their connection: certificates, proxies, times and headers from the
extras, and basic authentication. This package's own client knows login, password and headers.
"""

from __future__ import annotations

import importlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from airflow_hudi_maint.core.engines.rest_client import (
    HTTP_CLIENT_ERROR,
    HTTP_NOT_FOUND,
    HTTP_SERVER_ERROR,
    HTTP_UNAUTHORIZED,
    RestClient,
    json_object,
    said_in,
)
from airflow_hudi_maint.core.errors import EngineError, InvalidSettingError

if TYPE_CHECKING:
    from airflow_hudi_maint.core.engines.livy import Rest
    from airflow_hudi_maint.hooks.cluster_connection import LivyConnection

PROVIDER = "airflow.providers.apache.livy.hooks.livy"

_SILENCE_SECONDS = 10.0
"""For a connection without a timeout of its own: the provider's hook would wait for ever."""
_ATTEMPTS = 4
_PAUSE_SECONDS = 0.5


def livy_rest(connection: LivyConnection, *, auth_type: str | None = None) -> Rest:
    """Return what asks the Livy of a connection; ``auth_type`` is the import path of a class that signs requests.

    Raises InvalidSettingError for what only the provider understands where that is not installed, and for a class that
    cannot be imported.
    """
    if has_provider():
        return ProviderRest(connection=connection, auth_type=None if auth_type is None else _imported(auth_type))
    needs_provider = [*sorted(connection.options), *(() if auth_type is None else ("livy_auth_type",))]
    if needs_provider:
        raise InvalidSettingError(
            f"{', '.join(needs_provider)} of the connection {connection.conn_id!r} to Livy is for Airflow's Livy "
            "provider, which is not installed: install apache-airflow-providers-apache-livy (the extra [livy])"
        )
    return RestClient(
        root=connection.root,
        what="Livy",
        user=connection.user,
        password=connection.password,
        headers=connection.headers,
    )


def has_provider() -> bool:
    """Whether Airflow's Livy provider is installed. Raises InvalidSettingError for one that cannot be imported."""
    try:
        importlib.import_module(PROVIDER)
    except ModuleNotFoundError as error:
        if error.name is not None and (error.name == PROVIDER or PROVIDER.startswith(f"{error.name}.")):
            return False
        raise _broken(error) from error
    except ImportError as error:
        raise _broken(error) from error
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRest:
    """Livy through the provider's hook; a new hook for each request, since it is not made for several threads.

    A look is asked for again after an error of the network or of the server; a change only when it was certainly not
    received.
    """

    connection: LivyConnection
    auth_type: Callable[..., object] | None = None
    attempts: int = _ATTEMPTS

    @property
    def root(self) -> str:
        """The address of Livy."""
        return self.connection.root

    def get(self, path: str) -> Mapping[str, object] | None:
        """Return the object at a path; None where there is none of this name.

        Raises EngineError or InvalidSettingError.
        """
        return self._ask("GET", path, data=None)

    def send(self, verb: str, path: str, *, body: Mapping[str, object] | None = None) -> Mapping[str, object] | None:
        """Ask for a change; raises as :meth:`get` does."""
        return self._ask(verb, path, data=json.dumps(body or {}))

    def _ask(self, verb: str, path: str, *, data: str | None) -> Mapping[str, object] | None:
        import requests

        for attempt in range(1, self.attempts + 1):
            try:
                answer = self._hook().run_method(path, method=verb, data=data, headers=dict(self.connection.headers))
            except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema) as error:
                raise InvalidSettingError(f"Livy cannot be asked at {self.root}: {error}") from None
            except requests.exceptions.RequestException as error:
                if attempt == self.attempts or (data is not None and not _was_not_received(error)):
                    raise self._silent(error) from None
            else:
                code = answer.status_code
                if code < HTTP_SERVER_ERROR or data is not None or attempt == self.attempts:
                    return self._read(answer, verb=verb, path=path)
            time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
        raise AssertionError  # pragma: no cover  the last attempt returned or raised

    def _read(self, answer: Any, *, verb: str, path: str) -> Mapping[str, object] | None:
        code = answer.status_code
        if code == HTTP_NOT_FOUND:
            return None
        if code in HTTP_UNAUTHORIZED:
            raise InvalidSettingError(
                f"Livy at {self.root} does not let {self.connection.user or 'an anonymous user'} in (HTTP {code}); "
                f"give login and password in connection {self.connection.conn_id!r}"
            )
        if code >= HTTP_CLIENT_ERROR:
            raise EngineError(f"Livy at {self.root} refused {verb} {path} (HTTP {code}): {said_in(answer.text)}")
        return json_object(answer.content, where=f"Livy at {self.root}{path}")

    def _hook(self) -> Any:
        from airflow.sdk import Connection

        connection = self.connection
        given = Connection(
            conn_id=connection.conn_id,
            conn_type="livy",
            host=connection.root,
            login=connection.user or None,
            password=connection.password or None,
            extra=json.dumps(dict(connection.options)),
        )
        base: Any = importlib.import_module(PROVIDER).LivyHook

        class OfGivenConnection(base):  # type: ignore[misc]
            """The provider's hook on a connection that was read already: asking Airflow again costs a round trip."""

            def get_connection(self, _: str) -> Connection:
                return given

        options = {"check_response": False, "timeout": connection.options.get("timeout", _SILENCE_SECONDS)}
        pair = connection.options.get("cert")
        if isinstance(pair, list):  # Certificate and key: JSON has no tuples, and requests takes nothing else.
            options["cert"] = tuple(pair)
        return OfGivenConnection(livy_conn_id=connection.conn_id, extra_options=options, auth_type=self.auth_type)

    def _silent(self, error: Exception) -> EngineError:
        return EngineError(
            f"Livy at {self.root} does not answer ({error}). Is it running, and is this its address? "
            "Over https, is its certificate trusted?"
        )


def _imported(path: str) -> Callable[..., object]:
    """Return the class of an import path."""
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidSettingError(f"livy_auth_type={path!r} cannot be imported: {error}") from None
    if not callable(found):
        raise InvalidSettingError(f"livy_auth_type={path!r} is no class: requests signs nothing with it")
    return cast("Callable[..., object]", found)


def _was_not_received(error: Exception) -> bool:
    """Whether no connection came about, as far as urllib3 says."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return type(reason).__name__ in ("NewConnectionError", "ConnectTimeoutError", "NameResolutionError")


def _broken(error: ImportError) -> InvalidSettingError:
    return InvalidSettingError(
        f"Airflow's Livy provider is installed and cannot be imported ({error}): mend it, or remove it and let this "
        "package ask Livy by itself"
    )
