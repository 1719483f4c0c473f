"""How long a rewrite will take, and what comes out, by earlier ones of the same table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_ENOUGH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRewrite:
    """One rewrite that was done: bytes read and written, and the seconds that its job took."""

    bytes_before: int
    bytes_after: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a rewrite is expected to take; ``runs`` counts the earlier ones that it rests on."""

    seconds: float
    bytes_after: int
    runs: int


def predict_rewrite(past: Sequence[PastRewrite], *, input_bytes: int) -> Prediction | None:
    """Predict from earlier rewrites; None without one.

    A job takes a while to start and then so long a byte: with three runs of different sizes on, a line is laid through
    them by least squares, with neither part below zero. With fewer, the time of the run nearest in size is taken,
    longer by the ratio of bytes where this one is larger: too much rather than too little.

    >>> past = [PastRewrite(bytes_before=size, bytes_after=size, seconds=10 + size / 100) for size in (100, 200, 400)]
    >>> predict_rewrite(past, input_bytes=300)
    Prediction(seconds=13.0, bytes_after=300, runs=3)
    """
    usable = [one for one in past if one.bytes_before > 0 and one.seconds > 0]
    if not usable:
        return None
    ratio = sum(one.bytes_after for one in usable) / sum(one.bytes_before for one in usable)
    seconds = _by_line(usable, input_bytes) if _is_line(usable) else _by_nearest(usable, input_bytes)
    return Prediction(seconds=round(seconds, 1), bytes_after=round(input_bytes * ratio), runs=len(usable))


def _is_line(past: Sequence[PastRewrite]) -> bool:
    return len(past) >= _ENOUGH and len({one.bytes_before for one in past}) > 1


def _by_line(past: Sequence[PastRewrite], size: int) -> float:
    count = len(past)
    mean_size = sum(one.bytes_before for one in past) / count
    mean_seconds = sum(one.seconds for one in past) / count
    spread = sum((one.bytes_before - mean_size) ** 2 for one in past)
    slope = sum((one.bytes_before - mean_size) * (one.seconds - mean_seconds) for one in past) / spread
    start = mean_seconds - slope * mean_size
    if slope <= 0:
        return mean_seconds
    if start < 0:
        return sum(one.seconds for one in past) / sum(one.bytes_before for one in past) * size
    return start + slope * size


def _by_nearest(past: Sequence[PastRewrite], size: int) -> float:
    nearest = min(past, key=lambda one: (abs(one.bytes_before - size), one.seconds))
    return nearest.seconds * max(1.0, size / nearest.bytes_before)
