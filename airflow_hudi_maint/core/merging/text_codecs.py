"""What whole text files are compressed with: to plain bytes and back, piece by piece.

gzip members, zstd frames and LZ4 frames may follow each other in one file, so compressed files are joined as they are.
Hadoop writes ``.snappy`` and ``.lz4`` as blocks with lengths before them, which may follow each other as well.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from airflow_hudi_maint.core.model.merge_settings import Codec

PIECE_BYTES = 4 << 20
_BLOCK_BYTES = 256 * 1024
_MOST_BLOCK_BYTES = 256 << 20
_LZ4_FRAME = b"\x04\x22\x4d\x18"
_LENGTH = struct.Struct(">I")
_RAW = {Codec.SNAPPY: "snappy", Codec.LZ4: "lz4_raw"}


class BrokenTextError(ValueError):
    """A text file that cannot be understood; whoever opened it says which one."""


def decoded(source: BinaryIO, *, codec: Codec, piece_bytes: int = PIECE_BYTES) -> Iterator[bytes]:
    """The plain bytes of a file, piece by piece; raises BrokenTextError where it is damaged or cut short."""
    if codec is Codec.NONE:
        while piece := source.read(piece_bytes):
            yield piece
        return
    head = source.read(4)
    source.seek(0)
    if codec is Codec.SNAPPY or (codec is Codec.LZ4 and head != _LZ4_FRAME):
        yield from _hadoop_blocks(source, codec=codec)
        return
    yield from _streamed(source, codec=codec, piece_bytes=piece_bytes)


def encoded(pieces: Iterable[bytes | memoryview], *, codec: Codec, head: bytes) -> Iterator[bytes]:
    """The pieces as a member or frame of their own; ``head`` is the beginning of a file that it is to fit behind."""
    if codec is Codec.NONE:
        for piece in pieces:
            yield bytes(piece)
    elif codec is Codec.SNAPPY or (codec is Codec.LZ4 and head[:4] != _LZ4_FRAME):
        yield from _as_hadoop_blocks(pieces, codec=codec)
    else:
        yield _compressed(pieces, codec=codec)


def _streamed(source: BinaryIO, *, codec: Codec, piece_bytes: int) -> Iterator[bytes]:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.PythonFile(_Unclosed(source), mode="r"), str(codec)) as stream:
            while piece := stream.read(piece_bytes):
                yield piece
    except (pa.ArrowException, OSError) as error:
        raise BrokenTextError(f"its {codec} data cannot be read: {error}") from error


class _Unclosed:
    """A source that Arrow may close although its owner reads on."""

    closed = False

    def __init__(self, source: BinaryIO) -> None:
        self._source = source

    def read(self, count: int = -1) -> bytes:
        return self._source.read(count)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        return


def _compressed(pieces: Iterable[bytes | memoryview], *, codec: Codec) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, str(codec)) as stream:
        for piece in pieces:
            stream.write(piece)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _hadoop_blocks(source: BinaryIO, *, codec: Codec) -> Iterator[bytes]:
    """Blocks of Hadoop's BlockCompressorStream: plain length, then pieces of compressed length and bytes."""
    import pyarrow as pa

    unpack = pa.Codec(_RAW[codec])

    def length() -> int | None:
        data = source.read(4)
        if not data:
            return None
        value = int(_LENGTH.unpack(data)[0]) if len(data) == _LENGTH.size else -1
        if not 0 <= value <= _MOST_BLOCK_BYTES:
            raise BrokenTextError(
                f"it is not {codec} as Hadoop and Spark write it; rewrite it with one of their codecs"
            )
        return value

    while (plain := length()) is not None:
        while plain > 0:
            packed = length()
            data = source.read(packed) if packed else b""
            if not packed or len(data) != packed:
                raise BrokenTextError(f"its last block of {codec} data is cut short")
            piece = _unpacked(unpack, data, most=plain, codec=codec)
            plain -= len(piece)
            yield piece


def _unpacked(unpack: object, data: bytes, *, most: int, codec: Codec) -> bytes:
    import pyarrow as pa

    size = snappy_length(data) if codec is Codec.SNAPPY else lz4_length(data)
    if size > most:
        raise BrokenTextError(f"its {codec} data is longer than its blocks say")
    try:
        plain: bytes = unpack.decompress(data, decompressed_size=size, asbytes=True)  # type: ignore[attr-defined]
    except (pa.ArrowException, OSError) as error:
        raise BrokenTextError(f"its {codec} data cannot be read: {error}") from error
    return plain


def snappy_length(data: bytes) -> int:
    """The plain length at the beginning of a snappy block, seven bits a byte."""
    value = shift = 0
    for byte in data[:5]:
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 the bit that says that more bytes follow
            return value
        shift += 7
    raise BrokenTextError("its snappy data has no length")


def lz4_length(data: bytes) -> int:
    """The plain length of an LZ4 block, by its sequences: it stands nowhere, and Arrow fills up to what it is told."""

    def extended(length: int, at: int) -> tuple[int, int]:
        if length == 15:  # noqa: PLR2004 then bytes are added up to one that is not 255
            while True:
                length, at = length + data[at], at + 1
                if data[at - 1] != 255:  # noqa: PLR2004
                    break
        return length, at

    total = at = 0
    try:
        while at < len(data):
            token = data[at]
            literals, at = extended(token >> 4, at + 1)
            total, at = total + literals, at + literals
            if at >= len(data):
                return total
            match, at = extended(token & 15, at + 2)
            total += match + 4
    except IndexError:
        pass
    raise BrokenTextError("its last block of lz4 data is cut short")


def _as_hadoop_blocks(pieces: Iterable[bytes | memoryview], *, codec: Codec) -> Iterator[bytes]:
    import pyarrow as pa

    pack = pa.Codec(_RAW[codec])
    for piece in pieces:
        view = memoryview(piece)
        for start in range(0, len(view), _BLOCK_BYTES):
            plain = view[start : start + _BLOCK_BYTES]
            packed = pack.compress(plain, asbytes=True)
            yield _LENGTH.pack(len(plain)) + _LENGTH.pack(len(packed)) + packed
