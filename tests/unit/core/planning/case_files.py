"""Reads ``tests/cases/*.txt``: titled cases that people can read and add to.

A case begins with ``--- its title``. ``key: value`` lines are its settings, ``#`` lines are comments, and a line with
``=>`` has an input on the left and what is expected of it on the right, which may go on in indented lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "cases"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case of a file."""

    title: str
    settings: dict[str, list[str]] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def setting(self, key: str, default: str = "") -> str:
        """The value of a setting that stands once."""
        return self.settings.get(key, [default])[0]


def read_cases(name: str) -> list[Case]:
    """The cases of a file, in its order."""
    return list(_cases((FOLDER / name).read_text(encoding="utf-8").splitlines()))


def _cases(lines: list[str]) -> Iterator[Case]:
    case: Case | None = None
    for line in lines:
        text = line.strip()
        if text.startswith("--- "):
            if case:
                yield case
            case = Case(title=text.removeprefix("--- "))
        elif case is None or not text or text.startswith("#"):
            continue
        elif "=>" in text:
            given, _, expected = text.partition("=>")
            case.lines.append((given.strip(), expected.strip()))
        elif line.startswith(" "):
            given, expected = case.lines.pop()
            case.lines.append((given, f"{expected} {text}".strip()))
        else:
            key, _, value = text.partition(":")
            case.settings.setdefault(key.strip(), []).append(value.strip())
    if case:
        yield case
