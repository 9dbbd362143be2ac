"""Joins the records of several load generators that ran at once into one, as if one had sent everything.

Histograms are added bucket by bucket, and percentiles read from the sum: no percentile is made of
percentiles. What cannot be joined exactly (percentiles of the steps of a run, the median of answers
of a connection) is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab.errors import LoadError
from citius_lab.judge.histogram import Histogram

if TYPE_CHECKING:
    from collections.abc import Sequence

    Record = dict[str, Any]


def joined(loads: Sequence[Record], offsets_ns: Sequence[int]) -> Record:
    """Return one record of all.

    Args:
        loads: Records of the generators, in the shape of the generator's README.
        offsets_ns: How far each generator's clock is ahead of the coordinator's.

    Raises:
        LoadError: A record is not of a run with the others.
    """
    first = loads[0]
    for name in ("schema", "histogram_unit", "interval_s"):
        if len({load.get(name) for load in loads}) > 1:
            found = ", ".join(str(load.get(name)) for load in loads)
            raise LoadError(f"records of generators differ in {name}: {found}")
    pairs = list(zip(loads, offsets_ns, strict=True))
    begin_ns = min(load["begin_ns"] - offset for load, offset in pairs)
    end_ns = max(load["end_ns"] - offset for load, offset in pairs)
    elapsed_s = (end_ns - begin_ns) / 1e9
    record: Record = {name: first[name] for name in SAME if name in first}
    record |= {name: sum(load.get(name) or 0 for load in loads) for name in SUMS if name in first}
    record |= {name: _sums([load[name] for load in loads]) for name in TABLES if name in first}
    record |= {
        "options": _options([load["options"] for load in loads]),
        "interrupted": any(load["interrupted"] for load in loads),
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "begin_unix_s": min(load["begin_unix_s"] for load in loads),
        "end_unix_s": max(load["end_unix_s"] for load in loads),
        "elapsed_s": elapsed_s,
        "requests_per_s": record["completed"] / elapsed_s if elapsed_s > 0 else 0.0,
        "connections": _connections([load["connections"] for load in loads]),
        "tls": _tls([load["tls"] for load in loads if load.get("tls")]),
        "intervals": _intervals(loads),
    }
    for name in ("asked_per_s", "sent_per_s"):
        record[name] = _sum_or_none([load.get(name) for load in loads])
    for name in ("latency", "service", "connect", "schedule_lag"):
        _join_histogram(record, loads, name)
    cpu_s = record["cpu_s"]["user"] + record["cpu_s"]["system"]
    completed = record["completed"]
    record["cpu_us_per_request"] = cpu_s * 1e6 / completed if completed else None
    return record


def _join_histogram(record: Record, loads: Sequence[Record], name: str) -> None:
    texts = [load.get(f"{name}_histogram") for load in loads]
    present = [text for text in texts if text]
    if not present:
        record[f"{name}_histogram"] = None
        record[f"{name}_us"] = loads[0].get(f"{name}_us")
        return
    sum_of_all = Histogram()
    for text in present:
        sum_of_all.merge(Histogram.decode(text))
    record[f"{name}_histogram"] = sum_of_all.encode()
    record[f"{name}_us"] = _summary([load[f"{name}_us"] for load in loads], sum_of_all)


def _summary(parts: Sequence[Record], histogram: Histogram) -> Record:
    """Return the generators' keys: percentiles of the sum, mean and deviation of all values."""
    percents = {"p50": 50, "p90": 90, "p99": 99, "p99_9": 99.9}
    found: Record = {}
    parts = [part for part in parts if part and part.get("max") is not None]
    for name in parts[0] if parts else ():
        value = histogram.percentile(percents[name]) if name in percents else None
        if name in percents:
            found[name] = None if value is None else value / 1e3
    for name, choose in (("min", min), ("max", max)):
        if parts and name in parts[0]:
            found[name] = choose(part[name] for part in parts)
    if all("count" in part and part.get("mean") is not None for part in parts) and parts:
        count = sum(part["count"] for part in parts)
        mean = sum(part["count"] * part["mean"] for part in parts) / count
        squares = sum(part["count"] * (part["stdev"] ** 2 + part["mean"] ** 2) for part in parts)
        found |= {"mean": mean, "stdev": max(0.0, squares / count - mean**2) ** 0.5}
    return found | {"count": histogram.total}


def _options(all_options: Sequence[Record]) -> Record:
    found = dict(all_options[0])
    for name in ("rate", "users", "connections", "threads", "requests"):
        found[name] = _sum_or_none([options.get(name) for options in all_options])
    return found


def _connections(parts: Sequence[Record]) -> Record:
    found: Record = {
        name: sum(part[name] for part in parts)
        for name in ("asked", "open_max", "open_at_end", "idle")
    }
    found["answers_min"] = min(part["answers_min"] for part in parts)
    found["answers_max"] = max(part["answers_max"] for part in parts)
    return found


def _tls(parts: Sequence[Record]) -> Record | None:
    if not parts:
        return None
    counts = {name: value for name, value in parts[0].items() if type(value) is int}
    return parts[0] | {name: sum(part[name] for part in parts) for name in counts}


def _intervals(loads: Sequence[Record]) -> list[Record]:
    steps: dict[float, Record] = {}
    for load in loads:
        for one in load.get("intervals", ()):
            step = steps.setdefault(one["at_s"], {"at_s": one["at_s"], "completed": 0, "errors": 0})
            step["completed"] += one["completed"]
            step["errors"] += one["errors"]
    return [steps[at_s] for at_s in sorted(steps)]


def _sums(tables: Sequence[dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for table in tables:
        for name, value in table.items():
            found[name] = found.get(name, 0) + value
    return found


def _sum_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


SAME = ("schema", "tool", "version", "url", "histogram_unit", "interval_s")
SUMS = (
    "completed", "sent", "unsent", "background", "drained", "unanswered", "connections_opened",
    "connections_lost", "connects_over_1s", "bodies_compared", "bytes_read", "bytes_written",
)  # fmt: skip
TABLES = ("connect_failures", "network", "errors", "statuses", "cpu_s")
