"""PostgreSQL's infinite dates and times: ``max`` and ``min`` of the classes of ``datetime``.

The objects themselves are meant, so that a ``date(9999, 12, 31)`` is that day. A ``datetime`` that is equal
to ``datetime.max`` is infinite as well. `pickle` and `copy` keep these objects: they are no class of their
own, which encoders of JSON and other databases would refuse.
"""

from __future__ import annotations

import copyreg
import datetime as dt
from functools import cache
from typing import Any, cast

_MAX_UTC, _MIN_UTC = (limit.replace(tzinfo=dt.UTC) for limit in (dt.datetime.max, dt.datetime.min))
_LATEST = {"9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999+00:00"}
_LIMITS: dict[tuple[str, bool], dt.date] = {
    ("date", True): dt.date.max,
    ("date", False): dt.date.min,
    ("timestamp", True): dt.datetime.max,
    ("timestamp", False): dt.datetime.min,
    ("timestamptz", True): _MAX_UTC,
    ("timestamptz", False): _MIN_UTC,
}
_ARGUMENTS = {id(limit): arguments for arguments, limit in _LIMITS.items()}


def infinite(kind: str, is_positive: bool) -> dt.date:
    """What infinity is read as: of a ``date``, a ``timestamp`` or a ``timestamptz``."""
    _keep_in_copies()
    return _LIMITS[kind, is_positive]


@cache
def _keep_in_copies() -> None:
    """Have copies of the limits be the limits, from the first infinity on that was read here or in a copy."""
    copyreg.pickle(dt.date, _reduced)
    copyreg.pickle(dt.datetime, _reduced)


def text_of(value: dt.date | dt.time) -> str:
    """ISO 8601, or infinity."""
    text = value.isoformat()
    arguments = _ARGUMENTS.get(id(value))
    if arguments is None:
        return "infinity" if text in _LATEST else text
    return "infinity" if arguments[1] else "-infinity"


def _reduced(value: dt.date) -> tuple[Any, ...]:
    arguments = _ARGUMENTS.get(id(value))
    if arguments is not None:
        return infinite, arguments
    return cast("tuple[Any, ...]", value.__reduce_ex__(4))
