"""PostgreSQL's infinite dates and times: ``max`` and ``min`` of the classes of ``datetime``.

The objects themselves are meant, so that a ``date(9999, 12, 31)`` is that day. A ``datetime`` that is equal
to ``datetime.max`` is infinite as well.
"""

from __future__ import annotations

import datetime as dt

_MAX_UTC, _MIN_UTC = (limit.replace(tzinfo=dt.UTC) for limit in (dt.datetime.max, dt.datetime.min))
_LATEST = {"9999-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999+00:00"}


def infinite(kind: str, is_positive: bool) -> dt.date:
    """What infinity is read as: of a ``date``, a ``timestamp`` or a ``timestamptz``."""
    latest, earliest = {
        "date": (dt.date.max, dt.date.min),
        "timestamp": (dt.datetime.max, dt.datetime.min),
        "timestamptz": (_MAX_UTC, _MIN_UTC),
    }[kind]
    return latest if is_positive else earliest


def text_of(value: dt.date | dt.time) -> str:
    """ISO 8601, or infinity."""
    text = value.isoformat()
    if value is dt.date.max or text in _LATEST:
        return "infinity"
    if value is dt.date.min or value is dt.datetime.min or value is _MIN_UTC:
        return "-infinity"
    return text
