"""The colours of charts, each by its role."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TypeAlias


class Ink(StrEnum):
    """A colour by its role. The value stands for it in a drawing whose colours the page's stylesheet gives."""

    TEXT = "#a00001"
    GRID = "#a00002"
    BEFORE = "#a00003"
    AFTER = "#a00004"
    LIMIT = "#a00005"
    EXPIRED = "#a00006"
    CLUSTERED = "#a00007"
    BLOCKED = "#a00008"
    GONE = "#a00009"
    KEPT = "#a0000a"
    WEEK = "#a0000b"
    MONTH = "#a0000c"
    LATER = "#a0000d"
    UNCOVERED = "#a0000e"
    WRITTEN = "#a0000f"
    CLEANED = "#a00010"

    @property
    def role(self) -> str:
        """The name of the role in the stylesheet."""
        return self.name.lower()

    @property
    def variable(self) -> str:
        """The name of the stylesheet's variable."""
        return f"--ink-{self.role}"


Paint: TypeAlias = Callable[[Ink], str]
"""What gives the colour of a role."""

LIGHT: Mapping[Ink, str] = {
    Ink.TEXT: "#3a4656",
    Ink.GRID: "#dde3ea",
    Ink.BEFORE: "#b3bdca",
    Ink.AFTER: "#2468d8",
    Ink.LIMIT: "#b45309",
    Ink.EXPIRED: "#d64545",
    Ink.CLUSTERED: "#2468d8",
    Ink.BLOCKED: "#a8690f",
    Ink.GONE: "#7c5cc4",
    Ink.KEPT: "#8996a6",
    Ink.WEEK: "#ee7f3b",
    Ink.MONTH: "#dfae2b",
    Ink.LATER: "#2f9c95",
    Ink.UNCOVERED: "#b9c2cd",
    Ink.WRITTEN: "#5b7da8",
    Ink.CLEANED: "#2f9c6a",
}
DARK: Mapping[Ink, str] = {
    Ink.TEXT: "#c3cdda",
    Ink.GRID: "#2f3b4a",
    Ink.BEFORE: "#5f6d7e",
    Ink.AFTER: "#5b9bff",
    Ink.LIMIT: "#f0b35a",
    Ink.EXPIRED: "#ff6b6b",
    Ink.CLUSTERED: "#5b9bff",
    Ink.BLOCKED: "#d99a3a",
    Ink.GONE: "#b49af0",
    Ink.KEPT: "#7f8da0",
    Ink.WEEK: "#ff9a5c",
    Ink.MONTH: "#f2cd5c",
    Ink.LATER: "#4fc4bb",
    Ink.UNCOVERED: "#566273",
    Ink.WRITTEN: "#7fa3d1",
    Ink.CLEANED: "#54c791",
}


def by_role(ink: Ink) -> str:
    """Paint with what stands for the role; the page's stylesheet gives the colour."""
    return str(ink)


def in_light(ink: Ink) -> str:
    """Paint with the colours of a light page."""
    return LIGHT[ink]


def declarations(colours: Mapping[Ink, str]) -> str:
    """The stylesheet's declarations of the colours.

    >>> declarations({Ink.TEXT: "#3a4656", Ink.GRID: "#dde3ea"})
    '--ink-text: #3a4656; --ink-grid: #dde3ea;'
    """
    return " ".join(f"{ink.variable}: {colour};" for ink, colour in colours.items())
