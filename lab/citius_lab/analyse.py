"""Records in, figures out: rates with intervals, ratios, costs, and a verdict on each figure.

A pure function of the records. The unit of repetition is the restart: one round gives one value
per figure, and the interval says how far another set of restarts might land. Values are treated
on the log scale, because servers differ by factors.

A verdict is ``valid``, ``suspect`` with reasons (the number may be right, do not build on it), or
``failed`` with reasons (there is no number worth showing).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from citius_lab.histogram import Histogram
from citius_lab.workloads import CASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.record import Results

Key = tuple[str, str, str]  # section, case, contestant


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95 % interval.

    Attributes:
        low: ``None``, like ``high``, where a single restart says nothing about another.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def spread(self) -> float | None:
        """Half the interval's width as a share of the value."""
        if self.low is None or self.high is None:
            return None
        return math.sqrt(self.high / self.low) - 1


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a figure is not valid.

    Attributes:
        kind: What figures with the same trouble have in common.
        detail: What is particular to this one.
    """

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to believe a figure, and why not."""

    word: str
    reasons: tuple[Reason, ...] = ()


@dataclass(slots=True)
class Figure:
    """What one contestant did on one case of one section.

    Attributes:
        ratio: Its rate over the baseline's; ``None`` for the baseline itself or without one.
        tie: Whether the ratio's interval leaves open which of the two is faster.
        leads: Whether it is the fastest of its case, or tied with the fastest.
    """

    section: str
    case: str
    contestant: str
    connections: int
    pipeline: int
    verdict: Verdict
    rounds: int = 0
    completed: int = 0
    counted_s: float = 0.0
    rate: Interval | None = None
    rates: tuple[float, ...] = ()
    cpu_us: Interval | None = None
    generator_cpu_us: float | None = None
    server_share: float | None = None
    generator_share: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    pss_kib: int | None = None
    body_bytes: int | None = None
    errors: dict[str, int] = field(default_factory=dict)
    ratio: Interval | None = None
    tie: bool = False
    leads: bool = False


@dataclass(slots=True)
class Analysis:
    """Everything a report shows that is not in the records as it stands."""

    baseline: str | None
    contestants: list[str]
    figures: dict[Key, Figure]
    idle_pss_kib: dict[str, int]
    ready_s: dict[str, float]
    conduct_faults: dict[str, dict[str, str]]

    def sections(self) -> list[str]:
        """Return the sections that hold figures, in the order of the report."""
        present = {section for section, _, _ in self.figures}
        return [name for name in ("closed loop", "pipelined") if name in present]

    def cases(self, section: str) -> list[str]:
        """Return the cases of a section, in the order of the contract."""
        present = {case for name, case, _ in self.figures if name == section}
        return [case.id for case in CASES if case.id in present]


def analyse(results: Results, baseline: str | None = None) -> Analysis:
    """Turn the records of one run into figures.

    Args:
        results: What a result folder says.
        baseline: The contestant that ratios refer to; ``uvicorn`` if it took part.
    """
    names = [entry["name"] for entry in results.run["contestants"]]
    measurements: dict[Key, list[dict[str, Any]]] = {}
    for record in results.of_kind("measurement"):
        key = (record["section"], record["case"], record["contestant"])
        measurements.setdefault(key, []).append(record)
    figures = {key: _figure(key, records) for key, records in measurements.items()}
    _add_faults(figures, results)
    baseline = baseline if baseline is not None else BASELINE
    if not any(contestant == baseline for _, _, contestant in figures):
        baseline = None
    _compare(figures, measurements, baseline)
    starts = results.of_kind("start")
    return Analysis(
        baseline=baseline,
        contestants=[name for name in names if any(key[2] == name for key in figures)],
        figures=figures,
        idle_pss_kib=_medians(starts, "pss_idle_kib"),
        ready_s=_medians(starts, "ready_after_s"),
        conduct_faults={start["contestant"]: start["conduct_faults"] for start in starts},
    )


# --- intervals ------------------------------------------------------------------------------------


def interval(values: Sequence[float]) -> Interval:
    """Return the geometric mean of positive values with its 95 % bootstrap interval.

    The bootstrap distribution of the mean of so few values is too narrow by a known factor,
    t/z · √(n/(n-1)) (Hesterberg 2015); deviations from the centre are widened by it.
    """
    logs = np.log(np.asarray(values, dtype=float))
    n_values = len(logs)
    centre = float(logs.mean())
    if n_values < 2:
        return Interval(math.exp(centre), None, None)
    low, high = np.quantile(_resampled_means(logs), [0.025, 0.975])
    widen = _t_975(n_values - 1) / Z_975 * math.sqrt(n_values / (n_values - 1))
    return Interval(
        math.exp(centre),
        math.exp(centre + (float(low) - centre) * widen),
        math.exp(centre + (float(high) - centre) * widen),
    )


def _resampled_means(values: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return the means of all resamples, or of enough of them where all are too many."""
    n_values = len(values)
    if n_values**n_values <= RESAMPLES_ALL_MAX:
        indices = _all_resamples(n_values)
    else:
        indices = np.random.default_rng(0).integers(0, n_values, (RESAMPLES, n_values))
    return values[indices].mean(axis=1)


@cache
def _all_resamples(n_values: int) -> Any:
    return np.array(list(itertools.product(range(n_values), repeat=n_values)))


def _t_975(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    # Cornish-Fisher: right to four digits from ten degrees of freedom on.
    z = Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


# --- figures --------------------------------------------------------------------------------------


def _figure(key: Key, records: list[dict[str, Any]]) -> Figure:
    section, case, contestant = key
    figure = Figure(
        section,
        case,
        contestant,
        connections=records[0]["connections"],
        pipeline=records[0]["pipeline"],
        verdict=Verdict(FAILED, (Reason("not measured"),)),
    )
    faults = _unique(record["fault"] for record in records if record["fault"])
    measured = [record for record in records if "load" in record]
    loads = [record["load"] for record in measured]
    for load in loads:
        for kind, count in load["errors"].items():
            figure.errors[kind] = figure.errors.get(kind, 0) + count
    figure.rounds = len(measured)
    figure.completed = sum(load["completed"] for load in loads)
    figure.counted_s = sum(load["elapsed_s"] for load in loads)
    productive = [record for record in measured if record["load"]["completed"] > 0]
    if productive:
        _fill(figure, productive)
    figure.verdict = judge(figure, measured, faults)
    return figure


def _fill(figure: Figure, records: list[dict[str, Any]]) -> None:
    figure.rates = tuple(record["load"]["requests_per_s"] for record in records)
    figure.rate = interval(figure.rates)
    costs = [_cpu_us(record) for record in records]
    figure.cpu_us = interval(costs) if min(costs) > 0 else None
    figure.generator_cpu_us = _median(record["load"]["cpu_us_per_request"] for record in records)
    figure.server_share = _median(record["usage"]["server_share"] for record in records)
    figure.generator_share = _median(record["usage"]["generator_share"] for record in records)
    figure.p50_ms, figure.p99_ms = _percentiles_ms(records)
    figure.pss_kib = max((record["memory"].get("pss_kib", 0) for record in records), default=0)
    figure.body_bytes = records[0]["body_bytes"]


def _cpu_us(record: dict[str, Any]) -> float:
    """Return the server's CPU time per request in µs.

    The clocks are read a moment after each event; the quotient of the two spans corrects for it.
    """
    load, usage = record["load"], record["usage"]
    used_s = usage["server_cpu_s"] * load["elapsed_s"] / usage["elapsed_s"]
    return float(used_s * 1e6 / load["completed"])


def _percentiles_ms(records: list[dict[str, Any]]) -> tuple[float | None, float | None]:
    """Return median and 99th percentile of all rounds' latencies, merged."""
    merged = Histogram()
    for record in records:
        merged.merge(Histogram.decode(record["load"]["latency_histogram"]))
    p50, p99 = merged.percentile(50), merged.percentile(99)
    # Below this many values the 99th percentile is a handful of requests.
    enough = merged.total >= P99_VALUES_MIN
    return (None if p50 is None else p50 / 1e6), (p99 / 1e6 if enough and p99 else None)


def _add_faults(figures: dict[Key, Figure], results: Results) -> None:
    """Give a failed figure to what a contestant owed when it died or did not start."""
    for record in results.of_kind("fault"):
        reason = Reason(record["message"].splitlines()[0])
        for case, section in record["cases"]:
            key = (section, case, record["contestant"])
            if key not in figures:
                figures[key] = Figure(section, case, record["contestant"], 0, 1, Verdict(FAILED))
            figures[key].verdict = Verdict(FAILED, (*figures[key].verdict.reasons, reason))


def _compare(
    figures: dict[Key, Figure], measurements: dict[Key, list[dict[str, Any]]], baseline: str | None
) -> None:
    rates = {
        key: {
            record["round"]: record["load"]["requests_per_s"]
            for record in records
            if record.get("load", {}).get("completed", 0) > 0
        }
        for key, records in measurements.items()
        if figures[key].verdict.word != FAILED
    }
    for key, own in rates.items():
        section, case, contestant = key
        if baseline is not None and contestant != baseline:
            figures[key].ratio = _ratio(own, rates.get((section, case, baseline), {}))
            figures[key].tie = _is_tie(figures[key].ratio)
    for section, case in {key[:2] for key in rates}:
        rivals = [key for key in rates if key[:2] == (section, case)]
        best = max(rivals, key=lambda key: _rate_value(figures[key]))
        for key in rivals:
            figures[key].leads = key == best or _is_tie(_ratio(rates[key], rates[best]))


def _ratio(own: dict[int, float], other: dict[int, float]) -> Interval | None:
    """Return the ratio of two contestants' rates, paired by round so that drift cancels."""
    rounds = sorted(own.keys() & other.keys())
    return interval([own[number] / other[number] for number in rounds]) if rounds else None


def _is_tie(ratio: Interval | None) -> bool:
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low <= 1 + PRACTICAL and ratio.high >= 1 - PRACTICAL


def _rate_value(figure: Figure) -> float:
    return figure.rate.value if figure.rate is not None else 0.0


# --- verdicts -------------------------------------------------------------------------------------


def judge(figure: Figure, records: list[dict[str, Any]], faults: list[str]) -> Verdict:
    """Return the verdict on one figure."""
    failures = [*map(Reason, faults), *_failures(figure)]
    if failures:
        return Verdict(FAILED, tuple(failures))
    doubts = [*_doubts_about_limits(figure, records), *_doubts_about_size(figure, records)]
    return Verdict(SUSPECT, tuple(doubts)) if doubts else Verdict(VALID)


def _failures(figure: Figure) -> Iterable[Reason]:
    n_errors = sum(figure.errors.values())
    wrong = sum(figure.errors.get(kind, 0) for kind in ("status", "length", "content"))
    if figure.completed == 0:
        yield Reason("no valid answer")
    if wrong:
        yield Reason("wrong answers under load", f"{wrong}")
    share = n_errors / max(n_errors + figure.completed, 1)
    if n_errors > wrong and share > ERRORS_MAX:
        kind = f"more than {ERRORS_MAX:.1%} errors"
        yield Reason(kind, f"{share:.2%}, {error_words(figure.errors)}")


def _doubts_about_limits(figure: Figure, records: list[dict[str, Any]]) -> Iterable[Reason]:
    """Name what was the limit, if it was not the server."""
    usage = [record["usage"] for record in records]
    foreign = _median(use["foreign_share"] for use in usage)
    steal = _median(use["steal_share"] for use in usage)
    busy = _median(1 - use["server_cpus_idle_share"] for use in usage)
    assert figure.server_share is not None
    assert figure.generator_share is not None
    if steal > STEAL_MAX:
        yield Reason("the hypervisor took CPU time away", f"{steal:.0%} of a CPU")
    if foreign > FOREIGN_MAX:
        # Then nothing can be said about what else was the limit.
        yield Reason("other programs kept a CPU busy", f"{foreign:.0%}")
    elif max(figure.server_share, busy) < SATURATED_MIN:
        shares = (
            f"server {figure.server_share:.0%}, generator {figure.generator_share:.0%} of a CPU"
        )
        if figure.generator_share > GENERATOR_MAX:
            yield Reason("limited by the load generator", shares)
        else:
            yield Reason("server not saturated", shares)
    gap = max(_little_gap(record) for record in records)
    if gap > LITTLE_MAX:
        yield Reason(
            "rate × latency is not the requests in flight (Little's law)", f"{gap:.0%} off"
        )


def _little_gap(record: dict[str, Any]) -> float:
    """Return how far rate × mean latency is from the requests that were in flight.

    A request counts where it ends, also one that began before the window: with few requests per
    connection the edges alone explain a gap, so it counts from ``LITTLE_REQUESTS_MIN`` on.
    """
    in_flight = record["connections"] * record["pipeline"]
    if record["load"]["completed"] < LITTLE_REQUESTS_MIN * in_flight:
        return 0.0
    mean_s = (record["load"]["latency_us"]["mean"] or 0.0) / 1e6
    return float(abs(record["load"]["requests_per_s"] * mean_s / in_flight - 1))


def _doubts_about_size(figure: Figure, records: list[dict[str, Any]]) -> Iterable[Reason]:
    fewest = min(record["load"]["completed"] for record in records)
    if figure.rounds < ROUNDS_MIN:
        yield Reason(f"fewer than {ROUNDS_MIN} restarts", str(figure.rounds))
    if figure.counted_s < COUNTED_MIN_S:
        kind = f"counted for less than {COUNTED_MIN_S:g} s in all"
        yield Reason(kind, f"{figure.counted_s:.1f} s")
    if fewest < COMPLETED_MIN:
        yield Reason(f"fewer than {COMPLETED_MIN} requests in a window", str(fewest))
    spread = None if figure.rate is None else figure.rate.spread
    if spread is not None and spread > SPREAD_MAX:
        yield Reason(f"restarts differ by more than ±{SPREAD_MAX:.0%}", f"±{spread:.0%}")


def error_words(errors: dict[str, int]) -> str:
    """Return the errors that happened, by class."""
    return ", ".join(f"{count} {kind}" for kind, count in errors.items() if count)


# --- small things ---------------------------------------------------------------------------------


def _median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


def _medians(records: list[dict[str, Any]], name: str) -> dict[str, Any]:
    values: dict[str, list[float]] = {}
    for record in records:
        values.setdefault(record["contestant"], []).append(record[name])
    return {contestant: _median(found) for contestant, found in values.items()}


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


VALID, SUSPECT, FAILED = "valid", "suspect", "failed"
BASELINE = "uvicorn"
# Differences below this share do not matter to anybody, whatever the interval says.
PRACTICAL = 0.02
ERRORS_MAX = 0.001
SATURATED_MIN = 0.90
GENERATOR_MAX = 0.80
# Of one CPU. Below it a busy desktop or a cron job is lost in the interval.
FOREIGN_MAX = 0.10
STEAL_MAX = 0.02
LITTLE_MAX = 0.15
LITTLE_REQUESTS_MIN = 20
ROUNDS_MIN = 3
COUNTED_MIN_S = 1.0
COMPLETED_MIN = 24
SPREAD_MAX = 0.25
P99_VALUES_MIN = 300
RESAMPLES_ALL_MAX = 50_000
RESAMPLES = 20_000
Z_975 = 1.959963984540054
T_975 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
