"""Thrift's compact protocol, read into plain values and written back byte for byte.

A struct is a dict from field id to ``(wire type, value)``, so that fields which nobody here knows survive a round trip.
Integers are ``int``, doubles and strings ``bytes``, booleans ``True`` or ``False``, structs a dict, lists and sets
``(element type, [values])``, maps ``(key type, value type, [(key, value)])``.

Source: the compact protocol's specification in Apache Thrift.
"""

from __future__ import annotations

from typing import Any, TypeAlias

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

Struct: TypeAlias = dict[int, tuple[int, Any]]

_SHORT_LIST = 15
_MAX_DEPTH = 64


class ThriftError(ValueError):
    """The bytes are no struct of the compact protocol."""


class CompactReader:
    """Reads structs out of ``data``; ``at`` is the position behind what was read."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at
        self._depth = 0

    def struct(self, *, until: int | None = None) -> Struct:
        """Read a struct; with ``until`` only its fields up to that id, which leaves ``at`` behind the last of them.

        Raises ThriftError where the bytes end early or make no sense.
        """
        try:
            return self._struct(until)
        except IndexError as error:
            raise ThriftError("it ends in the middle of a value") from error

    def _struct(self, until: int | None = None) -> Struct:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise ThriftError(f"structs are nested more than {_MAX_DEPTH} deep")
        found: Struct = {}
        number = 0
        data, read = self.data, self._value
        while True:
            start = self.at
            header = data[start]
            self.at = start + 1
            if not header:
                break
            kind = header & 15
            step = header >> 4
            number = number + step if step else self.integer()
            if until is not None and number > until:
                self.at = start
                break
            found[number] = (kind, kind == TRUE) if kind <= FALSE else (kind, read(kind))
        self._depth -= 1
        return found

    def unsigned(self) -> int:
        """Read a varint."""
        data, at = self.data, self.at
        byte = data[at]
        at += 1
        if byte < 128:  # noqa: PLR2004 the varint's continuation bit
            self.at = at
            return byte
        value, shift = byte & 127, 7
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 the varint's continuation bit
                self.at = at
                return value
            shift += 7
            if shift > 70:  # noqa: PLR2004 ten bytes hold 64 bits
                raise ThriftError("a number has more than ten bytes")

    def integer(self) -> int:
        """Read a number in zigzag order."""
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def _value(self, kind: int) -> Any:  # noqa: ANN401, PLR0911 a value of any wire type
        if I16 <= kind <= I64:
            return self.integer()
        if kind == BINARY:
            return self._bytes(self.unsigned())
        if kind == STRUCT:
            return self._struct()
        if kind in (LIST, SET):
            return self._list()
        if kind in (TRUE, FALSE):
            return self._bytes(1) == b"\x01"
        if kind == BYTE:
            return self._bytes(1)[0]
        if kind == DOUBLE:
            return self._bytes(8)
        if kind == MAP:
            return self._map()
        raise ThriftError(f"unknown wire type {kind}")

    def _bytes(self, count: int) -> bytes:
        start = self.at
        self.at = start + count
        if self.at > len(self.data):
            raise ThriftError("it ends in the middle of a value")
        return self.data[start : self.at]

    def _list(self) -> tuple[int, list[Any]]:
        header = self._bytes(1)[0]
        kind, count = header & 15, header >> 4
        if count == _SHORT_LIST:
            count = self.unsigned()
        if count > len(self.data) - self.at:
            raise ThriftError(f"a list claims {count} values, more than there are bytes")
        read = self._value
        return kind, [read(kind) for _ in range(count)]

    def _map(self) -> tuple[int, int, list[tuple[Any, Any]]]:
        count = self.unsigned()
        if not count:
            return 0, 0, []
        kinds = self._bytes(1)[0]
        key, value = kinds >> 4, kinds & 15
        if count > len(self.data) - self.at:
            raise ThriftError(f"a map claims {count} entries, more than there are bytes")
        return key, value, [(self._value(key), self._value(value)) for _ in range(count)]


def struct_bytes(value: Struct) -> bytes:
    """Write a struct."""
    out = bytearray()
    _write_struct(out, value)
    return bytes(out)


def field_header(kind: int, *, number: int, after: int) -> bytes:
    """The header of a field that follows the field ``after``, for a struct that is put together from parts."""
    out = bytearray()
    _write_header(out, kind, number, after)
    return bytes(out)


def list_header(kind: int, *, count: int) -> bytes:
    """The header of a list, of which the elements follow."""
    out = bytearray()
    _write_list_header(out, kind, count)
    return bytes(out)


def _write_struct(out: bytearray, value: Struct) -> None:
    last = 0
    for number in value if _is_ascending(value) else sorted(value):
        kind, content = value[number]
        if kind <= FALSE:
            kind = TRUE if content else FALSE
        _write_header(out, kind, number, last)
        last = number
        if kind > FALSE:
            _write_value(out, kind, content)
    out.append(0)


def _is_ascending(value: Struct) -> bool:
    last = 0
    for number in value:
        if number < last:
            return False
        last = number
    return True


def _write_header(out: bytearray, kind: int, number: int, last: int) -> None:
    step = number - last
    if 0 < step <= _SHORT_LIST:
        out.append(step << 4 | kind)
    else:
        out.append(kind)
        _write_integer(out, number)


def _write_list_header(out: bytearray, kind: int, count: int) -> None:
    if count < _SHORT_LIST:
        out.append(count << 4 | kind)
    else:
        out.append(_SHORT_LIST << 4 | kind)
        _write_unsigned(out, count)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 127:  # noqa: PLR2004 the varint's continuation bit
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_unsigned(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_value(out: bytearray, kind: int, value: Any) -> None:  # noqa: ANN401 a value of any wire type
    if I16 <= kind <= I64:
        _write_integer(out, value)
    elif kind == BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        element, values = value
        _write_list_header(out, element, len(values))
        for one in values:
            _write_value(out, element, one)
    elif kind in (TRUE, FALSE):
        out.append(1 if value else 2)
    elif kind == BYTE:
        out.append(value)
    elif kind == DOUBLE:
        out += value
    else:
        _write_map(out, value)


def _write_map(out: bytearray, value: tuple[int, int, list[tuple[Any, Any]]]) -> None:
    key, content, entries = value
    _write_unsigned(out, len(entries))
    if entries:
        out.append(key << 4 | content)
        for one, other in entries:
            _write_value(out, key, one)
            _write_value(out, content, other)
