"""Make the golden tables again with the Hudi writers of three versions.

Each Hudi version gets a process of its own, because one JVM holds one bundle. The instants and file ids of a remade
table are new, so remake a table only when its recipe changes; ``--truth-only`` keeps the tables
and asks the JVM about them again.

    python tests/golden/remake.py --bundles-dir DIR [--only v9_cow_plain ...] [--truth-only]

DIR holds ``hudi-spark3.5-bundle_2.12-<version>.jar`` for 0.15.0, 1.0.2 and 1.2.0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden
from jvm_truth import HudiJvm
from pyspark.sql import SparkSession
from recipes import (
    ARCHIVED,
    ARCHIVED_COMPACTED,
    BARE,
    FLAT,
    LOG_COMPACTED,
    NESTED,
    ODD,
    ODD_BARE,
    REPLACED,
    SIDE_FILES,
    TRIPS,
    UNDONE,
    Recipe,
)
from writer import COPY_ON_WRITE, MERGE_ON_READ, METADATA_TABLE, Table

BUNDLE = "hudi-spark3.5-bundle_2.12-{version}.jar"
TABLE_VERSIONS = {"0.15.0": 6, "1.0.2": 8, "1.2.0": 9}
# Plans hold the absolute paths of their input files: a neutral place keeps the maker's own folders out of them.
LAKE = Path("/lake")
LINE_LENGTH = 320


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One table to make: which recipe, by which Hudi version, of which type."""

    hudi_version: str
    table_type: str
    recipe: Recipe
    metadata_table: bool = False

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of this table's states, such as ``v9_cow``."""
        short = "cow" if self.table_type == COPY_ON_WRITE else "mor"
        return f"v{TABLE_VERSIONS[self.hudi_version]}_{short}"

    def names(self) -> list[str]:
        """Return the names of the golden tables this order makes."""
        return [f"{self.prefix}_{stage}" for stage in self.recipe.stages]


def orders() -> list[Order]:
    """Return every table to make."""
    of_every_version = [
        Order(hudi_version=version, table_type=table_type, recipe=recipe, metadata_table=with_metadata_table)
        for version in TABLE_VERSIONS
        for table_type, recipe, with_metadata_table in (
            (COPY_ON_WRITE, TRIPS, version == "1.2.0"),
            (MERGE_ON_READ, TRIPS, False),
            (COPY_ON_WRITE, ARCHIVED, False),
            (COPY_ON_WRITE, UNDONE, True),
            (MERGE_ON_READ, UNDONE, True),
            (COPY_ON_WRITE, REPLACED, True),
            (MERGE_ON_READ, REPLACED, True),
            (COPY_ON_WRITE, ODD_BARE, True),
            (MERGE_ON_READ, ODD, True),
            (COPY_ON_WRITE, SIDE_FILES, True),
            (MERGE_ON_READ, SIDE_FILES, True),
        )
    ]
    return [
        *of_every_version,
        Order(hudi_version="0.15.0", table_type=MERGE_ON_READ, recipe=ARCHIVED_COMPACTED),
        Order(hudi_version="1.0.2", table_type=MERGE_ON_READ, recipe=ARCHIVED_COMPACTED),
        Order(hudi_version="1.2.0", table_type=MERGE_ON_READ, recipe=ARCHIVED_COMPACTED),
        Order(hudi_version="1.0.2", table_type=MERGE_ON_READ, recipe=LOG_COMPACTED),
        Order(hudi_version="1.2.0", table_type=MERGE_ON_READ, recipe=LOG_COMPACTED),
        Order(hudi_version="0.15.0", table_type=MERGE_ON_READ, recipe=FLAT, metadata_table=True),
        Order(hudi_version="1.0.2", table_type=COPY_ON_WRITE, recipe=BARE, metadata_table=True),
        Order(hudi_version="1.2.0", table_type=COPY_ON_WRITE, recipe=FLAT, metadata_table=True),
        Order(hudi_version="1.2.0", table_type=MERGE_ON_READ, recipe=NESTED, metadata_table=True),
    ]


def main() -> None:
    """Run one process for each Hudi version that has something to make."""
    arguments = _arguments()
    only = set(arguments.only)
    if arguments.hudi_version:
        _make_all(arguments.hudi_version, bundles_dir=arguments.bundles_dir, only=only, truth_only=arguments.truth_only)
        return
    for version in TABLE_VERSIONS:
        if any(_wanted(order, only) for order in orders() if order.hudi_version == version):
            again = [sys.executable, __file__, *sys.argv[1:], "--hudi-version", version]
            # Instants are in the zone of the writer's JVM.
            subprocess.run(again, check=True, env={**os.environ, "TZ": "UTC"})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Make the golden tables with the real Hudi writers.")
    parser.add_argument("--bundles-dir", type=Path, required=True, help="folder of the three Hudi bundles")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="names of golden tables; default all")
    parser.add_argument("--truth-only", action="store_true", help="keep the zips and ask the JVM about them again")
    parser.add_argument(
        "--hudi-version", choices=list(TABLE_VERSIONS), help="make those of one version, in this process"
    )
    return parser.parse_args()


def _wanted(order: Order, only: set[str]) -> list[str]:
    return [name for name in order.names() if not only or name in only]


def _make_all(version: str, *, bundles_dir: Path, only: set[str], truth_only: bool) -> None:
    spark = _session(bundles_dir.expanduser().resolve() / BUNDLE.format(version=version))
    for order in orders():
        wanted = _wanted(order, only) if order.hudi_version == version else []
        if truth_only:
            for name in wanted:
                _ask_again(name, spark=spark)
        elif wanted:
            _make(order, table=_new_table(order, spark=spark), wanted=wanted)
    spark.stop()


def _session(bundle: Path) -> SparkSession:
    if not bundle.is_file():
        raise FileNotFoundError(f"no {bundle.name} in the folder of bundles")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.extraClassPath": str(bundle),
        # py4j walks Java streams, which the module system hides.
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC --add-opens=java.base/java.util.stream=ALL-UNNAMED",
        "spark.driver.memory": "1g",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(LAKE / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("golden tables")
    spark = builder.config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _new_table(order: Order, *, spark: SparkSession) -> Table:
    path = LAKE / order.prefix / order.recipe.make.__name__
    shutil.rmtree(path, ignore_errors=True)
    return Table(
        spark=spark,
        name=order.recipe.make.__name__,
        path=str(path),
        table_type=order.table_type,
        partition_fields=order.recipe.partition_fields,
        options={**order.recipe.options, **(METADATA_TABLE if order.metadata_table else {})},
    )


def _make(order: Order, *, table: Table, wanted: list[str]) -> None:
    done: list[str] = []
    for stage in order.recipe.make(table):
        done += stage.done
        name = f"{order.prefix}_{stage.name}"
        if name in wanted:
            golden.pack(Path(table.path), golden.HERE / f"{name}.zip")
            _write_truth(name, jvm=HudiJvm(table.spark, table.path, hudi_version=order.hudi_version), done=done)


def _ask_again(name: str, *, spark: SparkSession) -> None:
    """Put a golden table back where it was made and write what the JVM says of it now."""
    before = golden.truth(name)
    table_dir = Path(before["table"]["base_path"])
    shutil.rmtree(table_dir, ignore_errors=True)
    table_dir.parent.mkdir(parents=True, exist_ok=True)
    golden.unpack(name, LAKE / "unpacked").rename(table_dir)
    jvm = HudiJvm(spark, str(table_dir), hudi_version=before["table"]["hudi_version"])
    _write_truth(name, jvm=jvm, done=before["done"])


def _write_truth(name: str, *, jvm: HudiJvm, done: list[str]) -> None:
    said: dict[str, Any] = {
        "table": jvm.table(),
        "done": done,
        "rows": jvm.rows(),
        "last_completed_instant": jvm.last_completed_instant(),
        "timeline": jvm.timeline(),
        "partitions": jvm.partitions(),
        "metadata_view": jvm.metadata_view(),
        "pending_clustering": jvm.pending_clustering(),
        "pending_compaction": jvm.pending_compaction(),
        "files": golden.packed_files(Path(jvm.base_path)),
    }
    (golden.HERE / f"{name}.json").write_text(_as_json(said) + "\n", encoding="utf-8")
    print(f"{name}: {len(said['files'])} files, {said['rows']['total']} rows", flush=True)


def _as_json(value: object, *, indent: str = "") -> str:
    """Write a value on one line where it fits, so that a slice or an instant is a line to read and to diff."""
    inline = json.dumps(value)
    if len(inline) <= LINE_LENGTH or not isinstance(value, dict | list):
        return inline
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_as_json(part, indent=deeper)}" for key, part in value.items()]
    else:
        parts = [_as_json(part, indent=deeper) for part in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return opening + ",".join(f"\n{deeper}{part}" for part in parts) + f"\n{indent}{closing}"


if __name__ == "__main__":
    main()
