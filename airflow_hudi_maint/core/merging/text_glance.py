"""Look through one more file of a group where it lies in memory, when it is as its neighbours are.

What :func:`~airflow_hudi_maint.core.merging.text_scan.scan` finds is found here without a copy; whatever is out of the
ordinary is left to it.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from airflow_hudi_maint.core.merging.text_codecs import BrokenTextError
from airflow_hudi_maint.core.merging.text_scan import (
    TextRules,
    TextScan,
    check_first_line,
    check_last_line,
    read_head,
)
from airflow_hudi_maint.core.model.merge_settings import FileFormat, FileKind
from airflow_hudi_maint.core.planning.csv_dialect import BOM
from airflow_hudi_maint.core.planning.merge_kinds import wrong_content

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_HEAD_BYTES = 4096
_COUNTED_BYTES = 128 * 1024
_WORD_BYTES = 8
_LINE_FEED, _CARRIAGE_RETURN = 10, 13


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Knows the files of a group by one of them. ``header`` is the header with its line end; empty without headers."""

    rules: TextRules
    kind: FileKind
    header: bytes
    line_end: bytes
    mark: bytes
    quote: int | None

    @classmethod
    def of(cls, found: TextScan, *, rules: TextRules, kind: FileKind) -> Glance | None:
        """What to expect after a file; None where that file is no guide to the others."""
        mark = (rules.escape if rules.escape and rules.escape != rules.quote else "\\").encode()
        header = found.header + found.line_end if rules.has_header else b""
        if rules.has_header:
            is_plain = found.header and header.endswith(b"\n") and found.cut_bytes in {len(header), len(BOM + header)}
            # A second mark would make the first one of another file a part of its header.
            is_plain = is_plain and not header.startswith(BOM)
            if not is_plain or mark in header or header.count(rules.quote.encode() or b"\0") % 2:
                return None
        quote = ord(rules.quote) if rules.quote else None
        return cls(rules=rules, kind=kind, header=header, line_end=found.line_end, mark=mark, quote=quote)

    def missing_end(self, data: bytearray, *, start: int, end: int) -> bytes | None:
        """Look through a file whose bytes behind its ``header`` lie there.

        The result is the line end that it lacks, empty when it lacks none; None when the file needs a closer look.
        """
        if end <= start or data[end - 1] == _CARRIAGE_RETURN:
            return None
        line_end = self.line_end if self.header else self._line_end(data, start=start, end=end)
        if (
            line_end is None
            or not self._is_text(data, start=start, end=end)
            or not self._has_whole_quotes(data, start=start, end=end)
            or (self.rules.format is FileFormat.JSON and not self._ends_whole(data, start=start, end=end))
        ):
            return None
        return b"" if data[end - 1] == _LINE_FEED else line_end

    def _line_end(self, data: bytearray, *, start: int, end: int) -> bytes | None:
        """The line end of a file without a header, after a look at its beginning."""
        most = min(end, start + _HEAD_BYTES)
        first = bytes(data[start : data.find(b"\n", start, most) + 1])
        if not first or first.startswith(BOM) or wrong_content(self.kind, head=bytes(data[start : start + 12])):
            return None
        try:
            if self.rules.format is not FileFormat.JSON:
                # The first line is mostly all of the first record: where it is not, a few more may be.
                read = read_head(first, rules=self.rules) or read_head(bytes(data[start:most]), rules=self.rules)
                return None if read is None else read.line_end
            if first.isspace() or b"\0" in first:
                return None
            check_first_line(first, rules=self.rules)
        except BrokenTextError:
            return None
        return first[len(first.rstrip(b"\r\n")) :][-2:]

    def _is_text(self, data: bytearray, *, start: int, end: int) -> bool:
        import numpy as np

        if not self.rules.must_be_utf8:
            return True
        piece = np.frombuffer(data, dtype=np.uint8, count=end - start, offset=start)
        if np.maximum.reduce(piece) < 128:  # noqa: PLR2004 ASCII
            return True
        try:
            codecs.utf_8_decode(memoryview(data)[start:end], "strict", True)  # noqa: FBT003 by position: final
        except UnicodeDecodeError:
            return False
        return True

    def _has_whole_quotes(self, data: bytearray, *, start: int, end: int) -> bool:
        import numpy as np

        if self.quote is None:
            return True
        quote, found = np.uint8(self.quote), self._found
        words = found.view(np.uint64)
        odd = 0
        for at in range(start, end, _COUNTED_BYTES):
            size = min(end - at, _COUNTED_BYTES)
            np.equal(np.frombuffer(data, dtype=np.uint8, count=size, offset=at), quote, out=found[:size])
            found[size : size + _WORD_BYTES] = False
            odd ^= int(np.bitwise_xor.reduce(words[: size // _WORD_BYTES + 1])).bit_count()  # half the cost of a count
        if odd % 2:
            return False
        return data.find(self.mark, start, end) < 0 or data.find(self.rules.quote.encode(), start, end) < 0

    @cached_property
    def _found(self) -> npt.NDArray[np.bool_]:
        """Room for one answer a byte, for one thread."""
        import numpy as np

        return np.empty(_COUNTED_BYTES + _WORD_BYTES, dtype=np.bool_)

    def _ends_whole(self, data: bytearray, *, start: int, end: int) -> bool:
        """Whether the last line is JSON by itself; blank ones behind it need a closer look."""
        line = bytes(data[max(start, data.rfind(b"\n", start, end - 1) + 1) : end])
        if line.isspace():
            return False
        try:
            check_last_line(line, rules=self.rules)
        except BrokenTextError:
            return False
        return True
