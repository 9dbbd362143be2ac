"""What the report says of the generators of a cluster: their clocks, when they began, what they used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab.judge.statistics import median

if TYPE_CHECKING:
    from citius_lab.record import Results


def lines(results: Results) -> list[tuple[str, str]]:
    """Return each generator's name and what the runs found of it; none where this host generated the load."""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in results.of_kind("measurement"):
        for one in record.get("generators", ()):
            found.setdefault(one["worker"], []).append(one)
    return [(f"generator {worker}", _line(entries)) for worker, entries in found.items()]


def _line(entries: list[dict[str, Any]]) -> str:
    offset_us = median(one["offset_us"] for one in entries)
    uncertainty_us = max(one["uncertainty_us"] for one in entries)
    wall_us = median(one["wall_offset_us"] for one in entries)
    late_us = max((one["late_us"] for one in entries), key=abs)
    lags = [one["lag_p99_us"] for one in entries if one["lag_p99_us"] is not None]
    lag = f", p99 of its lag up to {max(lags) / 1e3:.2f} ms" if lags else ""
    return (
        f"on {entries[0]['host']}, clock {offset_us / 1e3:+.3f} ms ± "
        f"{uncertainty_us / 1e3:.3f} ms, wall clock "
        f"{wall_us / 1e3:+.3f} ms, began {late_us / 1e3:+.3f} ms off at most, up to "
        f"{max(one['cpu_share'] for one in entries):.0%} of its CPU{lag}"
    )
