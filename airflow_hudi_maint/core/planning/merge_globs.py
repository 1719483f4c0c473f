"""Globs that choose files below a root."""

from __future__ import annotations

import re
from collections.abc import Sequence


class PathFilter:
    """Takes the paths that one of ``include`` (none: all) and none of ``exclude`` matches.

    ``*`` and ``?`` stay within one name, ``**`` passes slashes; a glob without a slash is matched with the last name.

    >>> wanted = PathFilter(include=["day=*/**"], exclude=["*.tmp.csv"])
    >>> [wanted.takes(path) for path in ("day=1/a/b.csv", "day=1/a.tmp.csv", "raw/a.csv")]
    [True, False, False]
    """

    def __init__(self, *, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self.is_set = bool(include or exclude)
        self._include = [_compiled(one) for one in include]
        self._exclude = [_compiled(one) for one in exclude]

    def takes(self, path: str) -> bool:
        """Whether a path below the root is chosen."""
        if self._include and not any(one.fullmatch(path) for one in self._include):
            return False
        return not any(one.fullmatch(path) for one in self._exclude)


def _compiled(glob: str) -> re.Pattern[str]:
    whole = glob if "/" in glob else f"**/{glob}"
    parts: list[str] = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|.", whole, flags=re.DOTALL):
        if piece == "**/":
            parts.append(r"(?:.*/)?")
        elif piece == "**":
            parts.append(".*")
        elif piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        elif piece.startswith("[") and len(piece) > 1:
            parts.append(piece.replace("[!", "[^", 1))
        else:
            parts.append(re.escape(piece))
    return re.compile("".join(parts), flags=re.DOTALL)
