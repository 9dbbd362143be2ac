"""Numbers in the words of a report: the same in the terminal, in tables and in plots."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from citius_lab.judge.figures import FAILED, SUSPECT, Figure
from citius_lab.judge.statistics import Relation

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius_lab.judge.figures import Count, Noise, Verdict
    from citius_lab.judge.statistics import Interval


def number(value: float) -> str:
    """Return a value in at most four significant digits: 98 720, 413, 16.4, 0.35."""
    if value >= 1000:
        digits = len(str(int(value))) - 4
        return f"{round(value, -max(digits, 0)):,.0f}".replace(",", THIN)
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def brief(value: float) -> str:
    """Return a value in three digits: 1.32M, 98.7k, 413, 16.4."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor * 0.9995:
            scaled = value / factor
            return f"{scaled:.{max(0, 3 - len(str(int(scaled))))}f}{unit}"
    return number(value)


def tick(value: float) -> str:
    """Return what an axis says: 500, 2k, 0.1, 1.5M."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"


def percent(share: float) -> str:
    """Return a share: 3%, 0.4%."""
    return f"{share * 100:.0f}%" if share >= 0.0095 else f"{share * 100:.1f}%"


def spread(value: Interval | None) -> str:
    """Return half an interval's width, empty where there is none."""
    share = None if value is None else value.spread
    if share is None:
        return ""
    return ">99%" if share > 0.99 else f"±{percent(share)}"


def span(value: Interval | None, write: Callable[[float], str] | None = None) -> str:
    """Return an interval's ends; why there is none where a single restart was measured."""
    if value is None:
        return ""
    if value.low is None or value.high is None:
        return "one restart"
    low, high = ((write or _three_digits)(end) for end in (value.low, value.high))
    return f"{low}–{high}"


def ratio(figure: Figure) -> str:
    """Return how many times the baseline a figure is, with what it says of the two."""
    return "1" if figure.ratio is None else tie(figure) + times(figure.ratio.value)


def tie(figure: Figure) -> str:
    """Return ``≈`` for a figure that equals the baseline's, ``~`` for one that may or may not."""
    return {Relation.DIFFERENT: "", Relation.EQUAL: "≈", Relation.UNKNOWN: "~"}[figure.relation]


def times(value: float) -> str:
    """Return a ratio: 0.35, 2.25, 14.1, 130."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def micros(value: float) -> str:
    """Return a span in µs."""
    if value >= 1000:
        return number(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def millis(value: float) -> str:
    """Return a span in ms."""
    return number(value) if value >= 100 else f"{value:.3g}"


def megabytes(kib: float) -> str:
    """Return KiB as MB."""
    value = kib * 1024 / 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def mark(verdict: Verdict) -> str:
    """Return what stands behind a suspect number."""
    return "?" if verdict.word == SUSPECT else ""


def count(one: Count | None) -> str:
    """Return instructions per request, ``–`` where there is no count; ``?`` where counts differ."""
    if one is None or one.value is None:
        return "–"
    return brief(one.value) + ("?" if one.is_doubtful else "")


def is_shown(figure: Figure | None) -> bool:
    """Tell whether a figure has a number worth showing."""
    return figure is not None and figure.verdict.word != FAILED and figure.rate is not None


def warm_up(record: dict[str, Any] | None) -> str:
    """Say when a contestant was steady."""
    if record is None:
        return "none"
    after_s = record["steady_after_s"]
    if after_s is None:
        return f"never within {record['watched_s']:.1f} s"
    return "from the start" if after_s == 0 else f"steady after {after_s:.1f} s"


def noise(one: Noise) -> str:
    """Say what a contestant seems to differ from itself by."""
    return (
        f"Noise floor, {one.section} {one.case}: {one.contestant} against itself "
        f"×{one.ratio.value:.3f} ({span(one.ratio)})"
    )


def origin(run: dict[str, Any]) -> str:
    """Return what a run is of: when, on which machine, at which commit."""
    machine = run["environment"]
    parts = [day(run), f"{machine.get('cpus_online', '?')} CPUs, {machine.get('cpu', 'unknown')}"]
    parts += [machine[name] for name in ("kernel", "contestants_python") if machine.get(name)]
    parts += [f"commit {machine['commit']}"] if machine.get("commit") else []
    return "; ".join(parts)


def day(run: dict[str, Any]) -> str:
    """Return when a run began."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run["started_at"]))


def plain(value: Any) -> str:
    """Return a value of the environment's record."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "; ".join(f"{name}: {item}" for name, item in pairs)
    if isinstance(value, list):
        return ", ".join(map(str, cast("list[Any]", value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _three_digits(value: float) -> str:
    return f"{value:.3g}"


THIN = "\u202f"
