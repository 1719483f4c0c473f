"""What stays whatever the policies say: protected specs and legal holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import compress

from airflow_hudi_maint.core.model.expiry_guards import ExpiryGuards, PartitionSelector
from airflow_hudi_maint.core.model.partition import PartitionScheme

_Shape = tuple[bool, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldIndex:
    """Holds by what they name, so that a look-up costs one step for each kind of spec, however long the list.

    ``by_shape`` has them by the values that they name, ``by_path`` by the path that they are; each may stand in both,
    since a path that holds a percent sign, say, names another value when it is read as a spec.
    """

    names: tuple[str, ...]
    by_shape: Mapping[_Shape, Mapping[tuple[str, ...], tuple[str, ...]]]
    by_path: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, guards: ExpiryGuards, *, scheme: PartitionScheme) -> HoldIndex:
        """Index the protected specs and holds; raises InvalidSettingError for one that can hold nothing."""
        by_shape: dict[_Shape, dict[tuple[str, ...], tuple[str, ...]]] = {}
        by_path: dict[str, tuple[str, ...]] = {}
        names: list[str] = []
        for setting, words in (("protected", "protected by"), ("legal_hold", "under the legal hold")):
            for text in getattr(guards, setting):
                selector = PartitionSelector.parse(text, scheme=scheme, name=setting)
                name = f"{words} {text!r}"
                names.append(name)
                by_path[selector.path] = (*by_path.get(selector.path, ()), name)
                if selector.spec is not None:
                    shape = tuple(value is not None for _, value in selector.spec.levels)
                    literals = tuple(value for _, value in selector.spec.levels if value is not None)
                    of_shape = by_shape.setdefault(shape, {})
                    of_shape[literals] = (*of_shape.get(literals, ()), name)
        return cls(names=tuple(names), by_shape=by_shape, by_path=by_path)

    def find(self, partition_path: str, values: tuple[str, ...]) -> str | None:
        """What holds a partition, in words; None for one that is free."""
        return next(self._holding(partition_path, values), None)

    def all_of(self, partition_path: str, values: tuple[str, ...]) -> set[str]:
        """Everything that holds a partition."""
        return set(self._holding(partition_path, values))

    def _holding(self, partition_path: str, values: tuple[str, ...]) -> Iterator[str]:
        for shape, by_literals in self.by_shape.items():
            if len(shape) <= len(values):
                yield from by_literals.get(tuple(compress(values, shape)), ())
        folder = ""
        for segment in partition_path.split("/"):
            folder = f"{folder}/{segment}" if folder else segment
            yield from self.by_path.get(folder, ())
