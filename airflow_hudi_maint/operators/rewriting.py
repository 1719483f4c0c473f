"""What operators that execute a clustering share: how it runs, and how it is verified."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.hooks.arguments import as_optional_memory
from airflow_hudi_maint.hooks.execution_settings import verify_settings
from airflow_hudi_maint.operators.job import HudiJobOperator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.maintenance import JobControl
    from airflow_hudi_maint.core.model.verification import VerifySettings
    from airflow_hudi_maint.hooks.hudi import HudiHook


class HudiRewritingOperator(HudiJobOperator):
    """Execute a clustering, and verify what it left.

    :param parallelism: How many groups are rewritten at a time; None for Hudi's default of 15. (templated)
    :param read_parallelism: Most tasks that read one group (Hudi 1.0 and later); None for Hudi's default of 20.
        (templated)
    :param driver_memory: Memory of Spark's driver such as ``4g``; None for the connection's. (templated)
    :param options: More Hudi options of this run: a mapping or JSON of one, ``hoodie.memory.…`` among them. (templated)
    :param settings_file: Path or URL of a properties file of settings, as Hudi's own clustering job takes one; what is
        given as an argument wins over it. (templated)
    :param verify: ``full`` reads the footers of all files that were read and written, ``sample`` those of whole
        partitions up to ``verify_files``, ``timeline`` none; ``auto`` is full up to ``verify_files`` and then sample.
        (templated)
    :param verify_files: Most files whose footers a sample reads; None for the default of 4,000. (templated)
    :param verify_keys: Whether the record keys of what is verified are read and compared, too. (templated)
    """

    template_fields: Sequence[str] = (
        *HudiJobOperator.template_fields, "parallelism", "read_parallelism", "driver_memory", "options",
        "settings_file", "verify", "verify_files", "verify_keys",
    )  # fmt: skip

    def __init__(
        self,
        *,
        parallelism: int | str | None = None,
        read_parallelism: int | str | None = None,
        driver_memory: str | None = None,
        options: Mapping[str, Any] | str | None = None,
        settings_file: str | None = None,
        verify: str = "auto",
        verify_files: int | str | None = None,
        verify_keys: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.parallelism = parallelism
        self.read_parallelism = read_parallelism
        self.driver_memory = driver_memory
        self.options = options
        self.settings_file = settings_file
        self.verify = verify
        self.verify_files = verify_files
        self.verify_keys = verify_keys

    def job(self, context: Context) -> JobControl:
        """Say how the job is run, once the memory that it gets is an amount."""
        as_optional_memory("driver_memory", self.driver_memory)
        return super().job(context)

    def make_engine(self, hook: HudiHook) -> Engine:
        """Make the engine, with the memory that the task asks for."""
        memory = as_optional_memory("driver_memory", self.driver_memory)
        if memory is not None:
            hook.settings = replace(hook.settings, driver_memory=memory)
        return super().make_engine(hook)

    @property
    def verification(self) -> VerifySettings:
        """How the result is verified."""
        return verify_settings(verify=self.verify, verify_files=self.verify_files, verify_keys=self.verify_keys)
