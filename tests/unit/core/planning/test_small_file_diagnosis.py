"""Why small files are there, read from what the writes of the timeline did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_hudi_maint.core.model.commit import CommitMetadata, WriteStat
from airflow_hudi_maint.core.model.diagnosis import Cause, Certainty, Finding, Known, SampledFile, SmallFileDiagnosis
from airflow_hudi_maint.core.model.file_slice import BaseFile, FileSlice, LogFile
from airflow_hudi_maint.core.model.instant import Action, Instant, State
from airflow_hudi_maint.core.planning.small_file_diagnosis import DiagnosisFacts, diagnose_small_files
from tests.unit.core.planning.builders import basis

MIB = 1024**2
LIMIT = "hoodie.parquet.small.file.limit"
ESTIMATE = "hoodie.copyonwrite.record.size.estimate"
DAY = "day=1"


@dataclass
class Table:
    """A table written step by step: each write says which file groups of a partition it made or rewrote."""

    is_merge_on_read: bool = False
    writes: list[tuple[Instant, CommitMetadata]] = field(default_factory=list)
    files: dict[tuple[str, str], FileSlice] = field(default_factory=dict)

    def write(
        self,
        operation: str,
        *,
        partition: str = DAY,
        new: Mapping[str, tuple[int, int]] | None = None,
        grown: Mapping[str, tuple[int, int]] | None = None,
        logs: Sequence[str] = (),
    ) -> str:
        """Commit files as (bytes, records) by file id."""
        time = f"2026113000{len(self.writes):02}00000"
        stats = []
        for begins, files in ((True, new or {}), (False, grown or {})):
            for file_id, (size, records) in files.items():
                name = f"{file_id}_0-1-2_{time}.parquet"
                stats.append(_stat(file_id, f"{partition}/{name}", size, records, begins=begins))
                base = BaseFile(name=name, file_id=file_id, instant=time, bytes=size)
                self.files[partition, file_id] = FileSlice(
                    partition_path=partition, file_id=file_id, base_instant=time, base_file=base
                )
        for file_id in logs:
            stats.append(_stat(file_id, f"{partition}/.{file_id}_{time}.log.1_0-1-2", 10, 1, begins=False))
            self.add_log(partition, file_id, time)
        action = Action.DELTA_COMMIT if self.is_merge_on_read else Action.COMMIT
        instant = Instant(
            requested_time=time,
            completion_time=time,
            action=action,
            state=State.COMPLETED,
            file_name=f"{time}_{time}.{action}",
        )
        self.writes.append(
            (instant, CommitMetadata(operation=operation, written={partition: tuple(stats)}, replaced={}, schema=None))
        )
        return time

    def add_log(self, partition: str, file_id: str, time: str) -> None:
        one = self.files[partition, file_id]
        log = LogFile(name="log", file_id=file_id, instant=time, version=1, write_token="", bytes=10)
        self.files[partition, file_id] = FileSlice(
            partition_path=partition,
            file_id=file_id,
            base_instant=one.base_instant,
            base_file=one.base_file,
            log_files=(*one.log_files, log),
        )

    def hold(self, file_id: str, *, by: str) -> None:
        one = self.files[DAY, file_id]
        self.files[DAY, file_id] = FileSlice(
            partition_path=DAY, file_id=file_id, base_instant="1", base_file=one.base_file, pending_instant=by
        )

    def diagnose(
        self, *, samples: Sequence[SampledFile] = (), small: int = 100 * MIB, **given: str
    ) -> SmallFileDiagnosis:
        slices: dict[str, list[FileSlice]] = {}
        for (partition, _), one in self.files.items():
            slices.setdefault(partition, []).append(one)
        facts = DiagnosisFacts(
            basis=basis(),
            hudi_version="1.2.0",
            is_merge_on_read=self.is_merge_on_read,
            slices=slices,
            writes=self.writes,
            given={key.replace("__", "."): value for key, value in given.items()},
            partition_fields=("day",),
            samples=samples,
        )
        return diagnose_small_files(facts, small_file_bytes=small)


def _stat(file_id: str, path: str, size: int, records: int, *, begins: bool) -> WriteStat:
    return WriteStat(file_id=file_id, path=path, bytes=size, records=records, begins_group=begins)


def files(count: int, size: int, records: int, *, first: str = "f") -> dict[str, tuple[int, int]]:
    return {f"{first}{number}-0": (size, records) for number in range(count)}


def only(diagnosis: SmallFileDiagnosis, cause: Cause) -> Finding:
    (found,) = [one for one in diagnosis.findings if one.cause is cause]
    return found


def causes(diagnosis: SmallFileDiagnosis) -> list[str]:
    return [str(one.cause) for one in diagnosis.findings]


def test_a_bulk_insert_with_more_tasks_than_files_is_seen_in_its_own_commit() -> None:
    """Forty files of 10 MiB are 400 MiB: four would do."""
    table = Table()
    instant = table.write("BULK_INSERT", new=files(40, 10 * MIB, 1000))
    diagnosis = table.diagnose()
    found = only(diagnosis, Cause.BULK_INSERT)
    assert (found.small_files, found.certainty, found.instants) == (40, Certainty.CERTAIN, (instant,))
    assert found.evidence == (f"{instant} (bulk_insert) in 'day=1' made 40 files of 400 MiB in all, where 4 would do",)
    cures = {one.setting: (one.present, one.known, one.proposed) for one in found.cures}
    assert cures["hoodie.bulkinsert.shuffle.parallelism"] == ("that of the input", Known.DEFAULT, "4")
    assert cures["hoodie.bulkinsert.sort.mode"] == ("NONE", Known.DEFAULT, "GLOBAL_SORT")
    assert diagnosis.wasted_opens == 36


def test_bulk_inserts_one_after_the_other_never_fill_what_is_there() -> None:
    """Each made one file, which is no fault of its parallelism."""
    table = Table()
    for number in range(3):
        table.write("BULK_INSERT", new=files(1, 40 * MIB, 1000, first=f"{number}"))
    found = only(table.diagnose(), Cause.NO_HANDLING)
    assert (found.small_files, found.certainty) == (3, Certainty.CERTAIN)
    assert "that a bulk insert never looks at" in found.evidence[0]


def test_an_estimate_that_is_too_high_closes_files_too_early() -> None:
    """Rows of 80 bytes taken for 1,024: a file of 122,880 rows ends at 9.4 MiB."""
    table = Table()
    instant = table.write("INSERT", new=files(15, 122_880 * 80, 122_880))
    diagnosis = table.diagnose()
    found = only(diagnosis, Cause.ESTIMATE_TOO_HIGH)
    assert (found.small_files, found.certainty, found.instants) == (15, Certainty.CERTAIN, (instant,))
    assert "the estimate of 1,024 bytes a row (no commit is large enough to be measured)" in found.evidence[0]
    (cure,) = found.cures
    assert (cure.setting, cure.present, cure.known, cure.proposed) == (ESTIMATE, "1024", Known.DEFAULT, "80")


def test_a_writer_that_splits_otherwise_than_is_known_is_likely_set_otherwise() -> None:
    table = Table()
    table.write("UPSERT", new=files(15, 4 * MIB, 7_000))
    found = only(table.diagnose(), Cause.ESTIMATE_TOO_HIGH)
    assert found.certainty is Certainty.LIKELY
    assert "the writer is set otherwise than what is known here" in found.evidence[0]


def test_a_fixed_split_is_named() -> None:
    table = Table()
    table.write("INSERT", new=files(15, 4 * MIB, 7_000))
    given = {"hoodie__copyonwrite__insert__auto__split": "false", "hoodie__copyonwrite__insert__split__size": "7000"}
    found = only(table.diagnose(**given), Cause.ESTIMATE_TOO_HIGH)
    assert found.certainty is Certainty.CERTAIN
    assert "a split of 7,000 rows is set" in found.evidence[0]
    assert found.cures[0].setting == "hoodie.copyonwrite.insert.auto.split"
    assert (found.cures[0].present, found.cures[0].known) == ("false", Known.GIVEN)


def test_an_estimate_that_is_too_low_makes_files_overflow() -> None:
    """The second file of a bucket carries its prefix, and the number 1."""
    table = Table()
    table.write("INSERT", new={"a-0": (120 * MIB, 1000), "a-1": (5 * MIB, 40)})
    found = only(table.diagnose(), Cause.ESTIMATE_TOO_LOW)
    assert (found.small_files, found.certainty) == (1, Certainty.CERTAIN)
    assert "planned 1 new file and had to go on in 1 more" in found.evidence[0]


def test_new_files_beside_small_ones_say_what_the_limit_cannot_have_been() -> None:
    """Hudi stores no writer's setting; what it did shows that the limit was at or below the small file's size."""
    table = Table()
    table.write("INSERT", new={"a-0": (3 * MIB, 1000)})
    second = table.write("INSERT", new={"b-0": (4 * MIB, 1000)})
    found = only(table.diagnose(), Cause.NO_HANDLING)
    assert (found.small_files, found.certainty, found.instants) == (2, Certainty.LIKELY, (second,))
    (cure,) = found.cures
    assert (cure.setting, cure.present, cure.known) == (LIMIT, f"{3 * MIB} or less", Known.INFERRED)
    assert cure.proposed == str(100 * MIB)


def test_a_limit_of_zero_that_is_given_is_certain() -> None:
    table = Table()
    table.write("INSERT", new={"a-0": (3 * MIB, 1000)})
    table.write("INSERT", new={"b-0": (4 * MIB, 1000)})
    found = only(table.diagnose(**{LIMIT: "0"}), Cause.NO_HANDLING)
    assert found.certainty is Certainty.CERTAIN
    assert found.evidence[0].endswith(f"{LIMIT}=0")


def test_a_merge_on_read_commit_that_filled_one_of_many_looked_at_no_more() -> None:
    table = Table(is_merge_on_read=True)
    table.write("INSERT", new={"a-0": (3 * MIB, 1000), "y-0": (110 * MIB, 9000)})
    table.write("INSERT", new={"b-0": (9 * MIB, 1000)}, grown={"a-0": (6 * MIB, 2000)})
    table.write("INSERT", new={"c-0": (9 * MIB, 1000)}, grown={"a-0": (9 * MIB, 3000)})
    found = only(table.diagnose(), Cause.ONE_CANDIDATE)
    assert (found.certainty, found.cures[0].proposed) == (Certainty.CERTAIN, "3")
    assert "beside 1 small file and filled 1" in found.evidence[0]


def test_a_finding_is_as_sure_as_its_weakest_evidence() -> None:
    """Two small files that may both grow, where a commit looks at one: nothing shows yet that it was the reason."""
    table = Table(is_merge_on_read=True)
    table.write("INSERT", new={"a-0": (3 * MIB, 1000), "y-0": (110 * MIB, 9000)})
    table.write("INSERT", grown={"a-0": (4 * MIB, 2000)})
    table.write("CLUSTER", new={"d-0": (4 * MIB, 1000)})
    found = only(table.diagnose(), Cause.ONE_CANDIDATE)
    assert found.certainty is Certainty.POSSIBLE
    assert found.evidence[0].startswith("'day=1' has 2 small files that may grow")


def test_log_files_freeze_a_file_group_until_they_are_compacted() -> None:
    table = Table(is_merge_on_read=True)
    table.write("INSERT", new={"a-0": (3 * MIB, 1000)})
    table.write("UPSERT", logs=["a-0"])
    found = only(table.diagnose(), Cause.LOG_FILES)
    assert (found.small_files, found.certainty) == (1, Certainty.CERTAIN)
    assert found.cures[0].setting == "hoodie.compact.inline.max.delta.commits"
    assert "compact" in found.action


def test_a_pending_plan_freezes_what_it_holds() -> None:
    table = Table()
    table.write("INSERT", new={"a-0": (3 * MIB, 1000), "b-0": (3 * MIB, 1000)})
    for file_id in ("a-0", "b-0"):
        table.hold(file_id, by="20261130120000000")
    found = only(table.diagnose(), Cause.PENDING_PLAN)
    assert (found.small_files, found.instants, found.cures) == (2, ("20261130120000000",), ())
    assert "execute" in found.action


def test_a_micro_partition_cannot_be_cured_by_rewriting() -> None:
    """One file in each of many partitions: the setting is the table's partitioning."""
    table = Table()
    for number in range(30):
        table.write("INSERT", partition=f"day={number}", new=files(1, MIB, 10, first=f"{number}"))
    diagnosis = table.diagnose()
    found = only(diagnosis, Cause.MICRO_PARTITION)
    assert (found.small_files, len(found.partitions), diagnosis.wasted_opens) == (30, 30, 0)
    assert found.evidence[0] == "30 of 30 partitions hold less than 100 MiB, 30 MiB in all"
    (cure,) = found.cures
    assert (cure.present, cure.known) == ("day", Known.TABLE)
    assert "makes no full ones" in found.action


def test_the_last_file_of_a_large_partition_is_nothing_to_cure() -> None:
    table = Table()
    table.write("INSERT", new={"a-0": (120 * MIB, 1000), "b-0": (115 * MIB, 1000), "c-0": (9 * MIB, 100)})
    diagnosis = table.diagnose()
    assert causes(diagnosis) == ["remainder"]
    assert only(diagnosis, Cause.REMAINDER).cures == ()
    assert diagnosis.wasted_opens == 0


def test_small_files_from_before_the_active_timeline_are_not_explained() -> None:
    table = Table()
    table.write("INSERT", new=files(3, 60 * MIB, 1000))
    table.writes.clear()
    found = only(table.diagnose(), Cause.UNKNOWN)
    assert (found.small_files, found.certainty) == (3, Certainty.UNKNOWN)
    assert "begun before the active timeline" in found.evidence[0]


def test_footers_show_the_floor_of_the_bloom_filter() -> None:
    """33 rows take 436 KB, of which 431 KB are filter."""
    table = Table()
    table.write("INSERT", new={"a-0": (436_000, 33)})
    sample = SampledFile(partition_path=DAY, file_id="a-0", file_bytes=436_000, filter_bytes=431_000, records=33)
    found = only(table.diagnose(samples=[sample]), Cause.BLOOM_FILTER)
    assert found.evidence[0] == "in 1 of 1 small file read, half or more is filter: 421 KiB of 426 KiB for 33 rows"
    cures = {one.setting: one.proposed for one in found.cures}
    assert cures == {"hoodie.parquet.bloom.filter.enabled": "false", "hoodie.index.bloom.num_entries": "33"}


def test_an_estimate_measured_on_footers_is_cured_by_taking_them_off() -> None:
    """The writer measured a commit of files that were nearly all filter."""
    table = Table()
    table.write("INSERT", partition="day=0", new={"z-0": (150 * MIB, 1000)})
    table.write("INSERT", new=files(12, 11 * MIB, 801))
    sample = SampledFile(partition_path=DAY, file_id="a", file_bytes=436_000, filter_bytes=431_000, records=33)
    found = only(table.diagnose(samples=[sample]), Cause.ESTIMATE_TOO_HIGH)
    assert "measured on" in found.evidence[0]
    assert "hoodie.record.size.estimator.average.metadata.size" in {one.setting for one in found.cures}


def test_the_document_has_everything_and_the_rows_are_worst_first() -> None:
    table = Table()
    table.write("BULK_INSERT", new=files(40, 10 * MIB, 1000))
    table.write("INSERT", partition="day=0", new={"z-0": (3 * MIB, 1000)})
    diagnosis = table.diagnose()
    document = diagnosis.to_json()
    assert document["kind"] == "small-file-diagnosis"
    assert document["summary"] == {
        "partitions": 2,
        "partitions_with_small_files": 2,
        "files": 41,
        "small_files": 41,
        "bytes": 403 * MIB,
        "small_bytes": 403 * MIB,
        "wasted_opens": 36,
        "causes": ["bulk-insert-parallelism", "micro-partition"],
    }
    assert [row[0] for row in diagnosis.rows()] == ["day=1", "day=0"]
    assert any(line.startswith("  cure: hoodie.bulkinsert.sort.mode=GLOBAL_SORT") for line in diagnosis.lines())
    assert diagnosis.describe().startswith("41 of 41 files below 100 MiB, 36 wasted opens; causes: bulk-insert")
