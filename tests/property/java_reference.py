"""What ``java.util.Properties`` of Java 17 does, character by character: an oracle for our reader and writer.

It is made from its documentation and from what it was seen to do, and shares nothing with the code under test.
``tests/spark/test_policies_survive.py`` holds both to a real JVM. One thing is left out: of a backslash alone at the
end of a file Java makes an entry without key and value.
"""

from __future__ import annotations

_BLANK = " \t\f"
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def load(text: str) -> dict[str, str] | None:
    """Read a file; None where Java raises."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end, value_start = _bounds(line)
        key, value = _converted(line[:key_end]), _converted(line[value_start:])
        if key is None or value is None:
            return None
        found[key] = value
    return found


def _logical_lines(text: str) -> list[str]:
    """Lines without comments, blank lines, leading blanks, and with continuations joined."""
    lines: list[str] = []
    content, at = "", 0
    while at < len(text):
        at, line = _natural(text, at)
        line = line.lstrip(_BLANK)
        if not content and line and line[0] in "#!":
            continue
        if _continues(line):
            content += line[:-1]
            continue
        content += line
        if content:
            lines.append(content)
        content = ""
    return [*lines, content] if content else lines


def _natural(text: str, at: int) -> tuple[int, str]:
    end = at
    while end < len(text) and text[end] not in "\r\n":
        end += 1
    after = end + 2 if text[end : end + 2] == "\r\n" else end + 1
    return after, text[at:end]


def _continues(line: str) -> bool:
    count = 0
    while count < len(line) and line[-1 - count] == "\\":
        count += 1
    return count % 2 == 1


def _bounds(line: str) -> tuple[int, int]:
    end, is_escaped = 0, False
    while end < len(line) and (is_escaped or line[end] not in "=:" + _BLANK):
        is_escaped = line[end] == "\\" and not is_escaped
        end += 1
    start, has_separator = end, False
    while start < len(line) and line[start] in ("=:" if not has_separator else "") + _BLANK:
        has_separator = has_separator or line[start] in "=:"
        start += 1
    return end, start


def _converted(text: str) -> str | None:
    units: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\" or at == len(text):
            units.append("" if char == "\\" else char)
            continue
        char = text[at]
        at += 1
        if char != "u":
            units.append(_LETTERS.get(char, char))
            continue
        digits = text[at : at + 4]
        if len(digits) < 4 or any(one not in "0123456789abcdefABCDEF" for one in digits):
            return None
        units.append(chr(int(digits, 16)))
        at += 4
    return "".join(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def store(values: dict[str, str]) -> str:
    """Write a file, without the comment with the date that Java puts above it."""
    return "".join(f"{_saved(key, blanks=True)}={_saved(value, blanks=False)}\n" for key, value in values.items())


def _saved(text: str, *, blanks: bool) -> str:
    saved = ""
    for at, char in enumerate(text):
        if char == " ":
            saved += "\\ " if at == 0 or blanks else " "
        elif char in "\t\n\r\f":
            saved += {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\f": "\\f"}[char]
        elif char in "=:#!\\":
            saved += f"\\{char}"
        elif 0x20 <= ord(char) <= 0x7E:
            saved += char
        else:
            data = char.encode("utf-16-be", "surrogatepass")
            saved += "".join(f"\\u{data[i]:02X}{data[i + 1]:02X}" for i in range(0, len(data), 2))
    return saved
