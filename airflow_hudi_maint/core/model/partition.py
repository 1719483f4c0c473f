"""Partition paths, the fields they are made of, and specs that select some of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from airflow_hudi_maint.core.errors import InvalidPolicyError
from airflow_hudi_maint.core.model.strict_json import shown

NULL_PARTITION_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Hudi's key generators write for null, in every supported table version."""

WILDCARD = "*"

ENCODED_WILDCARD = "%2A"
_RESERVED_FOR = {",": "the end of a name", WILDCARD: "a wildcard", ENCODED_WILDCARD: "a wildcard"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionScheme:
    """How a table's partition paths are made: the fields in order, hive style or plain, URL-encoded or not."""

    fields: tuple[str, ...]
    hive_style: bool = False
    url_encoded: bool = False
    _prefixes: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_prefixes", tuple(f"{name}=" for name in self.fields))

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> PartitionScheme:
        """Read the scheme from ``hoodie.properties``; a key type behind a colon (``ts:timestamp``) is dropped."""
        text = properties.get("hoodie.table.partition.fields", "")
        return cls(
            fields=tuple(part.split(":", 1)[0].strip() for part in text.split(",") if part.strip()),
            hive_style=_is_true(properties.get("hoodie.datasource.write.hive_style_partitioning")),
            url_encoded=_is_true(properties.get("hoodie.datasource.write.partitionpath.urlencode")),
        )

    def values(self, partition_path: str) -> tuple[str, ...] | None:
        """The decoded value of each field, in field order; None when the path does not fit the scheme.

        A plain path of a single field may hold slashes (a date written as ``2026/11/30``). A path whose every segment
        names its field is read as hive style in any case: not every writer notes the switch. One of which some segments
        name a field, or one out of its order, fits neither way.

        >>> PartitionScheme(fields=("origin", "month"), hive_style=True).values("origin=EWR/month=9")
        ('EWR', '9')
        """
        if not self.fields:
            return () if not partition_path else None
        segments = partition_path.split("/") if len(self.fields) > 1 or self.hive_style else [partition_path]
        if len(segments) != len(self.fields) or not partition_path:
            return None
        if all(map(str.startswith, segments, self._prefixes)):
            segments = list(map(str.removeprefix, segments, self._prefixes))
        elif self.hive_style or any(map(self.names_a_field, segments)):
            return None
        return tuple(map(unquote, segments)) if self.url_encoded else tuple(segments)

    def names_a_field(self, segment: str) -> bool:
        """Whether a folder's name begins with ``field=``, of any of the fields."""
        return "=" in segment and segment.startswith(self._prefixes)

    def spec_of(self, plain_path: str) -> PartitionSpec | None:
        """The values that a plain path names, of a partition or of a folder; None where it has too many levels."""
        levels = plain_path.split("/") if len(self.fields) > 1 else [plain_path]
        if len(levels) > len(self.fields):
            return None
        values = map(unquote, levels) if self.url_encoded else levels
        return PartitionSpec(levels=tuple(zip(self.fields, values, strict=False)))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpec:
    """A prefix of the partition fields, each with a literal value or any (None); RFC-65's ``partitionSpec``.

    The empty spec selects the whole table.
    """

    levels: tuple[tuple[str, str | None], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.levels]
        doubled = next((name for name in names if names.count(name) > 1), None)
        if doubled is not None:
            msg = f"partitionSpec {shown(str(self))} names the field {shown(doubled)} twice; name each field once"
            raise InvalidPolicyError(msg)

    @classmethod
    def parse(cls, text: object) -> PartitionSpec:
        """Read ``user_id=*/``, ``region=eu/user_id=*/`` or ``/`` (the whole table); a trailing slash is optional.

        A slash, a percent sign and a star inside a value are written URL-encoded: ``day=2026%2F11%2F30/``.

        Raises InvalidPolicyError for a blank text, for a level that is not ``field=value``, for a star that is part of
        a value, and for a field that is named twice.

        >>> PartitionSpec.parse("region=eu/user_id=*/").levels
        (('region', 'eu'), ('user_id', None))
        """
        if not isinstance(text, str):
            msg = f"partitionSpec {shown(text)} is no text; write for example 'user_id=*/', or '/' for the whole table"
            raise InvalidPolicyError(msg)
        inner = text.strip().removeprefix("/").removesuffix("/")
        segments = inner.split("/") if inner else []
        if not segments and text.strip() != "/":
            msg = (
                f"partitionSpec {shown(text)} names nothing; write for example 'user_id=*/', or '/' for the whole table"
            )
            raise InvalidPolicyError(msg)
        levels: list[tuple[str, str | None]] = []
        for segment in segments:
            name, equals, value = segment.partition("=")
            if not (equals and name and value):
                msg = (
                    f"partitionSpec {shown(text)}: {shown(segment)} is not field=value; "
                    "write for example 'user_id=1/' or 'user_id=*/'"
                )
                raise InvalidPolicyError(msg)
            if WILDCARD in name or (WILDCARD in value and value != WILDCARD):
                msg = (
                    f"partitionSpec {shown(text)}: in {shown(segment)} the star is a part of a text, where it selects "
                    f"nothing; write '{name[:40]}=*' for any value, or '%2A' for a star inside a value"
                )
                raise InvalidPolicyError(msg)
            levels.append((name, None if value == WILDCARD else unquote(value)))
        return cls(levels=tuple(levels))

    @property
    def literal_count(self) -> int:
        """How many levels name a value; the more, the more specific the spec."""
        return sum(value is not None for _, value in self.levels)

    def check(self, scheme: PartitionScheme) -> None:
        """Raise InvalidPolicyError unless the fields are the first ones of ``scheme``, in order."""
        fields = tuple(name for name, _ in self.levels)
        if fields != scheme.fields[: len(fields)]:
            msg = (
                f"partitionSpec {shown(str(self))} names the fields {list(fields)}; the table is partitioned by "
                f"{list(scheme.fields)}, and a spec names the first of them in that order, "
                f"for example '{PartitionSpec(levels=tuple((name, None) for name in scheme.fields[:1]))}'"
            )
            raise InvalidPolicyError(msg)

    def matches(self, values: tuple[str, ...]) -> bool:
        """Whether a partition with these values lies under the spec."""
        wanted = (value for _, value in self.levels)
        return len(self.levels) <= len(values) and all(
            want is None or want == have for want, have in zip(wanted, values, strict=False)
        )

    def __str__(self) -> str:
        return "".join(f"{name}={_level_text(value)}/" for name, value in self.levels) or "/"


def naming_problem(partition_path: str, *, reserved: Sequence[str]) -> str | None:
    """Say why a partition cannot be named in a list that Hudi splits at commas; None when it can.

    ``reserved`` are the texts, of ``,``, ``*`` and ``%2A``, that Hudi reads as something else in the list at hand.

    >>> naming_problem("city=a,b", reserved=",*")
    "its name holds ',', which Hudi takes for the end of a name"
    """
    if partition_path and not partition_path.strip():
        return "its name is blank"
    found = next((text for text in reserved if text in partition_path), None)
    return found and f"its name holds {found!r}, which Hudi takes for {_RESERVED_FOR[found]}"


def _is_true(text: str | None) -> bool:
    return (text or "").strip().lower() == "true"


def _level_text(value: str | None) -> str:
    """Write a level's value so that :meth:`PartitionSpec.parse` reads it back: what it would misread is encoded."""
    if value is None:
        return WILDCARD
    return value.replace("%", "%25").replace("/", "%2F").replace(WILDCARD, ENCODED_WILDCARD)
