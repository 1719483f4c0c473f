"""Merge the small files of plain directories, and undo that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.errors import InvalidSettingError
from airflow_hudi_maint.core.model.units import counted
from airflow_hudi_maint.hooks.arguments import as_bool, as_exact_text, as_int, as_object, as_result_field, is_unset
from airflow_hudi_maint.hooks.hudi import HudiHook
from airflow_hudi_maint.hooks.plain_files import merge_settings, open_plain_directory, plain_storage_options
from airflow_hudi_maint.operators.base import MaintenanceOperator
from airflow_hudi_maint.operators.job_keeping import JOB_KEY, JobKeepingOperator, application_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from airflow.sdk import Context

    from airflow_hudi_maint.core.engines.base import Engine
    from airflow_hudi_maint.core.maintenance import Chunk, MergeWorkspace, SparkMerging
    from airflow_hudi_maint.core.model.merge_plan import MergePlan


class PlainDirectoryOperator(MaintenanceOperator):
    """Do one thing to one directory of plain files.

    :param directory: Path or URL of the directory. (templated)
    :param storage_conn_id: Connection with the storage's credentials: aws, google_cloud_platform, wasb, adls or
        webhdfs; None for none. (templated)
    :param storage_options: Given to fsspec as they are, over those of the connection: a mapping, or JSON. (templated)
    :param documents_location: Where plans and reports go, outside the directory; None for a hidden folder in it.
        (templated)
    """

    template_fields: Sequence[str] = (
        "directory", "storage_conn_id", "storage_options", "documents_location", *MaintenanceOperator.template_fields,
    )  # fmt: skip

    def __init__(
        self,
        *,
        directory: str,
        storage_conn_id: str | None = None,
        storage_options: Mapping[str, Any] | str | None = None,
        documents_location: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.directory = directory
        self.storage_conn_id = storage_conn_id
        self.storage_options = storage_options
        self.documents_location = documents_location

    def open(self) -> MergeWorkspace:
        """Open the directory."""
        options = plain_storage_options(
            self.directory, storage_conn_id=self.storage_conn_id, storage_options=self.storage_options
        )
        return open_plain_directory(
            self.directory, storage_options=options, documents_location=self.documents_location, log=self.say
        )


class MergeSmallFilesOperator(JobKeepingOperator, PlainDirectoryOperator):
    """Merge the small Parquet, ORC, CSV and JSON files of a directory tree, each directory for itself.

    Rows keep their order, types and metadata. A merged file is written beside its inputs, verified, and swapped for
    them by a journal; the inputs stay in a hidden trash folder, from which UndoMergeOperator takes them back. A run
    that died is finished or rolled back by the next one; a second run finds nothing. Two live runs never work on one
    directory: the later one fails, to be retried. Hudi, Delta, Iceberg and Paimon tables are refused by name.

    With ``engine="spark"`` one Spark job writes the merged files of the whole plan, its groups shared among tasks; the
    task still plans, verifies and swaps. A retry ends the job of the try before and plans anew; a task that is stopped
    kills its job.

    Returns ``{"action", "outcome", "message", "root", "run", "groups", "files_before", "files_after", "bytes_before",
    "bytes_after", "seconds", "warnings", "plan_path"}``; a dry run also has ``chunks``, one object for each part of the
    plan, to be mapped over: ``MergeSmallFilesOperator.partial(…, plan_path=…).expand(chunk=…)``.

    .. seealso:: ``docs/merging.md``

    :param target_file_bytes: Size that merged files grow to; None for 128 MiB. (templated)
    :param small_file_bytes: Files below this size are merged; None for 64 MiB. (templated)
    :param min_age_seconds: Files written less than this ago are left alone; None for 900. (templated)
    :param formats: Some of ``parquet``, ``orc``, ``csv``, ``json``: a list, JSON or names apart by commas; None for
        all. (templated)
    :param settings: Every other setting of docs/merging.md: a mapping, or JSON. (templated)
    :param plan_only: Whether to stop after the plan and report what it holds. (templated)
    :param plan_path: Plan to carry out in place of a new one, or the result of a dry run; it has its own settings.
        (templated)
    :param chunk: The part of that plan to carry out, one of the ``chunks`` of a dry run; None for all. (templated)
    :param directories_per_chunk: How many directories one chunk has at most; a plan for Spark is one chunk. (templated)
    :param engine: ``embedded`` merges in the task, ``spark`` in a job for what outgrows one machine. (templated)
    :param hudi_conn_id: With ``engine="spark"`` a connection of type ``hudi`` that says how Spark is run; None runs it
        beside the task. Its storage is not used. (templated)
    """

    template_fields: Sequence[str] = (
        *PlainDirectoryOperator.template_fields, "target_file_bytes", "small_file_bytes", "min_age_seconds", "formats",
        "settings", "plan_only", "plan_path", "chunk", "directories_per_chunk", "engine", "hudi_conn_id",
        "job_timeout",
    )  # fmt: skip

    def __init__(
        self,
        *,
        target_file_bytes: int | str | None = None,
        small_file_bytes: int | str | None = None,
        min_age_seconds: float | str | None = None,
        formats: Sequence[str] | str | None = None,
        settings: Mapping[str, Any] | str | None = None,
        plan_only: bool | str = False,
        plan_path: Any = None,
        chunk: Mapping[str, int] | str | None = None,
        directories_per_chunk: int | str = 100,
        engine: str = "embedded",
        hudi_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.target_file_bytes = target_file_bytes
        self.small_file_bytes = small_file_bytes
        self.min_age_seconds = min_age_seconds
        self.formats = formats
        self.settings = settings
        self.plan_only = plan_only
        self.plan_path = plan_path
        self.chunk = chunk
        self.directories_per_chunk = directories_per_chunk
        self.engine = engine
        self.hudi_conn_id = hudi_conn_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Merge."""
        from airflow_hudi_maint.core.model.report import Outcome

        with self.switched_on("Merge small files"):
            is_on_spark = self._is_on_spark()
            if is_unset(self.chunk) or (is_on_spark and self._is_whole_plan()):
                result = self._merge(context)
            else:
                result = self._chunk()
        self._handle = None
        self._forget(JOB_KEY)
        idle = result["message"] if result["outcome"] == Outcome.NOTHING_TO_DO else None
        return self.hand_on(context, result, idle=idle)

    def _merge(self, context: Context) -> dict[str, Any]:
        from airflow_hudi_maint.core import maintenance

        workspace = self.open()
        plan_path = self._plan_path()
        if not as_bool("plan_only", self.plan_only):
            settings = self._settings() if plan_path is None else None
            spark = self._spark(context, workspace) if self._is_on_spark() else None
            return dict(
                maintenance.merge_small_files(
                    workspace, now=self.now(), settings=settings, plan_path=plan_path, spark=spark
                ).report.summary()
            )
        reported = maintenance.merge_small_files(workspace, now=self.now(), settings=self._settings(), dry_run=True)
        return {**reported.report.summary(), "chunks": self._chunks(reported.plan) if reported.plan else []}

    def _is_on_spark(self) -> bool:
        name = None if is_unset(self.engine) else as_exact_text("engine", self.engine)
        if name not in (None, "embedded", "spark"):
            raise InvalidSettingError(f"engine={name!r}; expected 'embedded' or 'spark'")
        return name == "spark"

    def _is_whole_plan(self) -> bool:
        """A plan for Spark is one chunk; raises InvalidSettingError for a part of a plan."""
        if self._given_chunk().of != 1:
            raise InvalidSettingError(
                "engine='spark' carries out a whole plan in one job, and chunk is a part of one: leave chunk out, or "
                "make the plan with engine='spark', too"
            )
        if self._plan_path() is None:
            raise InvalidSettingError("chunk is a part of a plan: give plan_path, too")
        return True

    def _spark(self, context: Context, workspace: MergeWorkspace) -> SparkMerging:
        """Say how the job is run, named, stored and found again."""
        from airflow_hudi_maint.core.maintenance import JobControl, SparkMerging

        job = JobControl(
            application_name=application_name(context, task_id=self.task_id),
            previous=self._previous(context),
            on_submitted=self._on_submitted,
            timeout_seconds=self._timeout_seconds(),
        )
        return SparkMerging(engine=lambda: self.make_engine(workspace), job=job)

    def make_engine(self, workspace: MergeWorkspace) -> Engine:
        """Make the engine when a job has to run, and keep it for :meth:`on_kill`."""
        self._refuse_when_stopped()
        return self._reachable(HudiHook(self.hudi_conn_id).make_engine_for_files(workspace))

    def _chunks(self, plan: MergePlan) -> list[dict[str, int]]:
        from airflow_hudi_maint.core import maintenance

        size = as_int("directories_per_chunk", self.directories_per_chunk)
        if self._is_on_spark():
            size = max(size, len(plan.directories))
        return [{"number": one.number, "of": one.of} for one in maintenance.chunks_of(plan, directories_per_chunk=size)]

    def _chunk(self) -> dict[str, Any]:
        from airflow_hudi_maint.core import maintenance

        chunk = self._given_chunk()
        plan_path = self._plan_path()
        if plan_path is None:
            raise InvalidSettingError("chunk is a part of a plan: give plan_path, too")
        done = maintenance.merge_chunk(
            self.open(),
            plan_path=plan_path,
            chunk=chunk,
            now=self.now(),
            documents_location=as_exact_text("documents_location", self.documents_location),
        )
        return together([one.report.summary() for one in done], root=str(self.directory), plan_path=plan_path)

    def _given_chunk(self) -> Chunk:
        from airflow_hudi_maint.core.maintenance import Chunk

        given = as_object("chunk", self.chunk)
        return Chunk(number=as_int("chunk.number", given.get("number")), of=as_int("chunk.of", given.get("of")))

    def _plan_path(self) -> str | None:
        return as_exact_text("plan_path", as_result_field("plan_path", self.plan_path, field="plan_path"))

    def _settings(self) -> Any:
        return merge_settings(
            self.settings,
            target_file_bytes=self.target_file_bytes,
            small_file_bytes=self.small_file_bytes,
            min_age_seconds=self.min_age_seconds,
            formats=self.formats,
        )


class UndoMergeOperator(PlainDirectoryOperator):
    """Put the inputs of a merge back and delete its merged files, while the trash still has them.

    Refused, with nothing moved, when a merged file changed since or a place is taken. A second undo of one run fails.

    Returns ``{"action", "outcome", "message", "root", "run", …}`` as MergeSmallFilesOperator does.

    .. seealso:: ``docs/merging.md``

    :param run: The run to undo, as the merge's result names it, or that result; None for the last one. (templated)
    :param plan_path: In place of ``run`` a plan, all of whose chunks are undone: its path, or a result that has it.
        (templated)
    """

    template_fields: Sequence[str] = (*PlainDirectoryOperator.template_fields, "run", "plan_path")

    def __init__(self, *, run: Any = None, plan_path: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.run = run
        self.plan_path = plan_path

    def execute(self, context: Context) -> dict[str, Any]:
        """Undo."""
        from airflow_hudi_maint.core import maintenance

        with self.switched_on("Undo a merge"):
            run = as_exact_text("run", as_result_field("run", self.run, field="run"))
            plan_path = as_exact_text("plan_path", as_result_field("plan_path", self.plan_path, field="plan_path"))
            if run is not None and plan_path is not None:
                raise InvalidSettingError("run and plan_path were both given: give the one that is to be undone")
            if plan_path is None:
                result = dict(maintenance.undo_merge(self.open(), now=self.now(), run=run).report.summary())
            else:
                result = self._undo_plan(plan_path)
        return self.hand_on(context, result)

    def _undo_plan(self, plan_path: str) -> dict[str, Any]:
        from airflow_hudi_maint.core import maintenance
        from airflow_hudi_maint.core.model.report import Outcome

        location = as_exact_text("documents_location", self.documents_location)
        undone = maintenance.undo_plan(self.open(), plan_path=plan_path, now=self.now(), documents_location=location)
        rows = [one.report.summary() for one in undone]
        message = f"Undid {counted(len(rows), 'run')} of {plan_path}"
        result = together(rows, root=str(self.directory), plan_path=plan_path)
        return {**result, "action": "undo", "outcome": str(Outcome.DONE), "message": message}


def together(parts: Iterable[Mapping[str, Any]], *, root: str, plan_path: str) -> dict[str, Any]:
    """Add up what the runs of a chunk say; each directory's own report has its details and the run to undo."""
    from airflow_hudi_maint.core.model.report import Outcome

    rows = list(parts)
    counts = {
        name: sum(row[name] for row in rows)
        for name in ("groups", "files_before", "files_after", "bytes_before", "bytes_after", "warnings", "seconds")
    }
    outcome = str(Outcome.DONE if counts["groups"] else Outcome.NOTHING_TO_DO)
    before = counted(counts["files_before"], "file")
    message = f"{counted(len(rows), 'directory')} of {root}: {before} became {counts['files_after']:,}"
    return {
        "action": "merge", "outcome": outcome, "message": message, "root": root, "run": None, **counts,
        "plan_path": plan_path,
    }  # fmt: skip
