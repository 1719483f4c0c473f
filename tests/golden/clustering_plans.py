"""Ask Hudi of three releases for its clustering plans, and keep the answers in ``clustering_plans.json``.

    PYTHONPATH=. python tests/golden/clustering_plans.py --bundles-dir DIR

DIR holds ``hudi-spark3.5-bundle_2.12-<version>.jar`` for 0.15.0, 1.0.2 and 1.2.0. The questions are in
``clustering_cases.py``. An answer is a list of groups by partition, in the order of Hudi's plan: the number of output
files and the file ids. ``hour`` is that of the machine when Hudi planned; ``limit`` and ``partitions`` are what a
capped plan of ours asked for.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_hudi_maint.core.model.commit import PlanKind
from airflow_hudi_maint.core.storage.table import HudiTable
from tests.golden.clustering_cases import ANSWERS, CASES, RELEASES, TYPES, Case, make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BUNDLE = "hudi-spark3.5-bundle_2.12-{version}.jar"
_PLAN = "hoodie.clustering.plan.strategy"
_MODE = "hoodie.clustering.plan.partition.filter.mode"
_STRATEGIES = "org.apache.hudi.client.clustering.plan.strategy"
_NO_LIMIT = "100000"


def main() -> None:
    """Run one process for each release, since one JVM holds one bundle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundles-dir", type=Path, required=True, help="folder of the three Hudi bundles")
    parser.add_argument("--release", choices=list(RELEASES), help="ask this one, in this process, and print")
    chosen = parser.parse_args()
    if chosen.release:
        print(json.dumps(_answers(chosen.release, bundle=chosen.bundles_dir / _BUNDLE.format(version=chosen.release))))
        return
    found: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8")) if ANSWERS.exists() else {}
    for release in RELEASES:
        found = {key: value for key, value in found.items() if not key.startswith(f"{release}/")}
        again = [sys.executable, __file__, *sys.argv[1:], "--release", release]
        done = subprocess.run(again, check=True, env={**os.environ, "TZ": "UTC"}, stdout=subprocess.PIPE, text=True)
        found.update(json.loads(done.stdout.splitlines()[-1]))
        lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(found.items())]
        ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{ANSWERS}: {len(found)} answers")


def _answers(release: str, *, bundle: Path) -> dict[str, Any]:
    spark = _session(bundle)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for table_type in TYPES:
            tables: dict[str, Path] = {}
            for case in (one for one in CASES if table_type in one.types):
                if case.table not in tables:
                    tables[case.table] = make_table(
                        case.table, release=release, table_type=table_type, folder=Path(folder)
                    )
                key = f"{release}/{table_type}/{case.name}"
                found[key] = _answer(case, path=tables[case.table], spark=spark, release=release)
                print(key, sum(map(len, found[key]["groups"].values())), file=sys.stderr)
    spark.stop()
    return found


def _answer(case: Case, *, path: Path, spark: SparkSession, release: str) -> dict[str, Any]:
    """Have Hudi plan, read its plan from the timeline, and take it away again."""
    asked: dict[str, Any] = {}
    options = _options(case)
    if case.is_capped:
        asked = _our_limits(case, path=path, release=release)
        options |= {f"{_PLAN}.partition.selected": ",".join(asked["partitions"])}
        options |= {f"{_PLAN}.max.num.groups": str(asked["limit"])}
    if case.strategy == "day_rolling":
        asked = {"hour": datetime.now(UTC).hour}
    timeline = path / ".hoodie" / ("" if release == "0.15.0" else "timeline")
    before = set(timeline.iterdir())
    for name, value in options.items():
        spark.conf.set(name, value)
    spark.sql(f"CALL run_clustering(path => '{path}', op => 'schedule')").collect()
    for name in options:
        spark.conf.unset(name)
    new = set(timeline.iterdir()) - before
    table = HudiTable.open(str(path))
    made = [one for one in table.pending_plans(table.timeline()) if one.kind is PlanKind.CLUSTERING]
    made = [one for one in made if any(file.name.startswith(one.instant.requested_time) for file in new)]
    groups: dict[str, list[str]] = {}
    for plan in made:
        for inputs, outputs in zip(plan.groups, plan.group_output_file_counts, strict=True):
            ids = " ".join(one.file_id.removesuffix("-0") for one in inputs)
            groups.setdefault(inputs[0].partition_path, []).append(f"{outputs} {ids}")
    for file in new:
        if file.is_file():  # 0.15.0 makes folders beside its instants, too
            file.unlink()
    return {**asked, "groups": groups}


def _options(case: Case) -> dict[str, str]:
    """The options by which Hudi's own strategy is told what a case asks."""
    settings, options = case.settings, case.options
    sizes = {
        "small.file.limit": settings["small_file_bytes"],
        "target.file.max.bytes": settings["target_file_bytes"],
        "max.bytes.per.group": settings["max_group_bytes"],
        "max.num.groups": _NO_LIMIT,
        "single.group.clustering.enabled": "false",
    }
    named: dict[str, Any] = {
        "sort.columns": ",".join(settings.get("sort_columns", ())),
        "daybased.lookback.partitions": options.get("lookback"),
        "daybased.skipfromlatest.partitions": options.get("skip_from_latest"),
        "partition.selected": ",".join(options.get("partitions", ())),
        "partition.regex.pattern": options.get("regex"),
        "cluster.begin.partition": options.get("begin"),
        "cluster.end.partition": options.get("end"),
    }
    if settings.get("execution_strategy") == "single_file_sort":
        named["class"] = f"{_STRATEGIES}.SparkSingleFileSortPlanStrategy"
    modes = {
        "recent_days": "RECENT_DAYS",
        "day_rolling": "DAY_ROLLING",
        "selected_partitions": "SELECTED_PARTITIONS",
        "size_based": "NONE",
    }
    return {
        _MODE: modes[case.strategy],
        "hoodie.table.services.incremental.enabled": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.write.auto.upgrade": "false",
        **{f"{_PLAN}.{name}": str(value) for name, value in {**sizes, **named}.items() if value},
    }


def _our_limits(case: Case, *, path: Path, release: str) -> Mapping[str, Any]:
    from tests.golden.clustering_ours import our_plan

    plan = our_plan(case, path=path, release=release)
    return {"partitions": [entry.partition_path for entry in plan.chosen], "limit": plan.group_limit}


def _session(bundle: Path) -> SparkSession:
    from pyspark.sql import SparkSession

    if not bundle.expanduser().is_file():
        raise FileNotFoundError(f"no {bundle.name} in the folder of bundles")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.extraClassPath": str(bundle.expanduser().resolve()),
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.driver.memory": "1g",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.warehouse.dir": tempfile.gettempdir(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    spark = SparkSession.builder.master("local[2]").appName("clustering plans").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


if __name__ == "__main__":
    main()
