"""Records in, figures out: rates with intervals, ratios, costs, and a verdict on each figure.

A pure function of the records: the same folder gives the same figures on any machine. The unit of
repetition is the restart; several runs on one process count as one value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab.judge import compare, verdict
from citius_lab.judge.figures import (
    FAILED,
    Analysis,
    Count,
    Figure,
    Key,
    Noise,
    Outside,
    Reason,
    Section,
    Verdict,
)
from citius_lab.judge.histogram import Histogram
from citius_lab.judge.statistics import geometric_mean, interval, median, paired_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.judge.statistics import Interval
    from citius_lab.record import Results


def analyse(results: Results, baseline: str | None = None) -> Analysis:
    """Turn the records of one run into figures.

    Args:
        results: What a result folder says.
        baseline: The contestant that ratios refer to; every experiment's own without it.
    """
    sections = _sections(results.run)
    measurements, again = _by_key(results)
    faults = _faults(results)
    remembered = _remembered(results)
    series_of = {section.id: section.series for section in sections}
    warm = {key_of(record): record for record in results.of_kind("warm-up")}
    shared = _shared(results.run)
    figures: dict[Key, Figure] = {}
    for key in [*measurements, *(key for key in faults if key not in measurements)]:
        records = measurements.get(key, [])
        figure = _figure(key, records, series_of[key[0]])
        figure.warm_up = warm.get(key)
        figure.shares_cpus = figure.workers in shared
        own = (key[0].partition("/")[0], *key[1:])
        known = [*faults.get(key, []), *remembered.get(own, [])]
        _judge(figure, records, series_of[key[0]], known)
        figures[key] = figure
    analysis = Analysis(
        baselines={},
        contestants=_names(results.run, figures),
        sections=[section for section in sections if any(key[0] == section.id for key in figures)],
        figures=figures,
        noise=_noise(again, figures),
        idle_pss_kib=_medians(results.of_kind("start"), "pss_idle_kib"),
        ready_s=_medians(results.of_kind("start"), "ready_after_s"),
        conduct_faults={
            start["contestant"]: start["conduct_faults"] for start in results.of_kind("start")
        },
    )
    for entry in results.run["experiments"]:
        wanted = baseline if baseline is not None else entry["baseline"]
        present = any(
            key[0].startswith(f"{entry['name']}/") and key[2] == wanted for key in figures
        )
        analysis.baselines[entry["name"]] = wanted if present else None
    for key, count in _counts(results).items():
        if key in figures:
            figures[key].count = count
    compare.within(analysis)
    analysis.outside = _outside(results, figures)
    return analysis


# --- reading --------------------------------------------------------------------------------------


def _sections(run: dict[str, Any]) -> list[Section]:
    return [
        Section(f"{entry['name']}/{series['id']}", entry["name"], series)
        for entry in run["experiments"]
        for series in entry["series"]
    ]


def key_of(record: dict[str, Any]) -> Key:
    """Return the figure that a measurement is of."""
    return f"{record['experiment']}/{record['series']}", record["case"], record["contestant"]


def _by_key(
    results: Results,
) -> tuple[dict[Key, list[dict[str, Any]]], dict[Key, list[dict[str, Any]]]]:
    """Return the measurements that count, and those for the noise floor."""
    counted: dict[Key, list[dict[str, Any]]] = {}
    again: dict[Key, list[dict[str, Any]]] = {}
    for record in results.of_kind("measurement"):
        if not record["discarded"]:
            (again if record["again"] else counted).setdefault(key_of(record), []).append(record)
    return counted, again


def _faults(results: Results) -> dict[Key, list[str]]:
    """Return what kept cells from being measured: a contestant that died or did not start."""
    found: dict[Key, list[str]] = {}
    for record in results.of_kind("fault"):
        for series, case in () if record["again"] else record["cells"]:
            key = (f"{record['experiment']}/{series}", case, record["contestant"])
            found.setdefault(key, []).append(in_a_line(record["message"]))
    return found


def _remembered(results: Results) -> dict[Key, list[str]]:
    """Return what is wrong with contestants that remember answers, by experiment, case and contestant."""
    found: dict[Key, list[str]] = {}
    for record in results.of_kind("repetition"):
        if (fault := verdict.remembered(record["ratios"])) is not None:
            found[record["experiment"], record["case"], record["contestant"]] = [fault]
    return found


def in_a_line(message: str) -> str:
    """Return a fault's first line, with the last one of the log that it quotes."""
    first, *log = message.splitlines()
    said = [line.strip() for line in log if line.strip() and not line.startswith("(")]
    return f"{first} {said[-1]}" if first.endswith(":") and said else first


def _shared(run: dict[str, Any]) -> set[int]:
    """Return the numbers of workers at which server and generator competed."""
    if run.get("cluster"):
        return set()  # the generators are on other machines
    places = run["plan"]["placements"].items()
    return {int(workers) for workers, place in places if place["is_shared"]}


def _names(run: dict[str, Any], figures: dict[Key, Figure]) -> list[str]:
    present = {key[2] for key in figures}
    return [entry["name"] for entry in run["contestants"] if entry["name"] in present]


# --- figures --------------------------------------------------------------------------------------


def _figure(key: Key, records: list[dict[str, Any]], series: dict[str, Any]) -> Figure:
    unknown = Verdict(FAILED, (Reason("not measured"),))
    figure = Figure(*key, verdict=unknown, cost_verdict=unknown)
    measured = [record for record in records if "load" in record]
    for record in records[:1]:
        figure.workers = record["workers"]
        figure.connections = record["connections"]
        figure.pipeline = record["pipeline"]
    loads = [record["load"] for record in measured]
    for load in loads:
        for kind, count in load["errors"].items():
            figure.errors[kind] = figure.errors.get(kind, 0) + count
    figure.error_share = max(map(verdict.error_share, loads), default=0.0)
    tls: list[dict[str, Any]] = [load["tls"] for load in loads if load.get("tls")]
    figure.handshakes = sum(one.get("in_window", 0) for one in tls)
    figure.handshakes_resumed = sum(one.get("resumed_in_window", 0) for one in tls)
    figure.rounds = len({record["round"] for record in measured})
    figure.completed = sum(load["completed"] for load in loads)
    figure.counted_s = sum(load["elapsed_s"] for load in loads)
    productive = [record for record in measured if record["load"]["completed"] > 0]
    if productive:
        _fill_rate(figure, productive, series)
        _fill_cost(figure, productive)
        _fill_latency(figure, productive)
        figure.limiter = verdict.limiter(figure, productive, series)
        figure.is_capacity = figure.limiter not in verdict.NO_CAPACITY
    return figure


def _judge(
    figure: Figure,
    records: list[dict[str, Any]],
    series: dict[str, Any],
    faults: Sequence[str],
) -> None:
    found = [record["fault"] for record in records if record["fault"]]
    measured = [record for record in records if record.get("load", {}).get("completed")]
    every = list(dict.fromkeys([*found, *faults]))
    figure.verdict = verdict.judge(figure, measured, series, every, verdict.RATE)
    figure.cost_verdict = verdict.judge(figure, measured, series, every, verdict.COST)


def _fill_rate(figure: Figure, records: list[dict[str, Any]], series: dict[str, Any]) -> None:
    figure.by_round = _per_round((record, record["load"]["requests_per_s"]) for record in records)
    figure.rates = tuple(figure.by_round.values())
    figure.rate = interval(figure.rates)
    offered = [_offered(record, series) for record in records]
    if all(rate is not None for rate in offered):
        rates = [rate for rate in offered if rate is not None]
        figure.offered_per_s = geometric_mean(rates)
        pairs = zip(records, rates, strict=True)
        figure.achieved = median(record["load"]["requests_per_s"] / rate for record, rate in pairs)


def _offered(record: dict[str, Any], series: dict[str, Any]) -> float | None:
    """Return the rate at which requests were due; ``None`` in a closed loop."""
    load = series["load"]
    if load["pace"] == "users":
        return float(load["users"] / load["ramp_s"]) if load["ramp_s"] else None
    rate = record.get("rate")
    return None if rate is None else float(rate)


def _fill_cost(figure: Figure, records: list[dict[str, Any]]) -> None:
    costs = _per_round((record, cpu_us(record)) for record in records)
    if min(costs.values()) > 0:
        figure.cpu_by_round = costs
        figure.cpu_us = interval(list(costs.values()))
        figure.per_core_s = figure.cpu_us.inverse(1e6)
    database_us = median(services_cpu_us(record) for record in records)
    figure.services_cpu_us = database_us if database_us >= DATABASE_MIN_US else 0.0
    own = [record["load"]["cpu_us_per_request"] for record in records]
    figure.generator_cpu_us = median(cost for cost in own if cost is not None)
    figure.server_share = median(record["usage"]["server_share"] for record in records)
    figure.generator_share = median(record["usage"]["generator_share"] for record in records)
    if figure.rate is not None and figure.generator_share > 0:
        figure.ceiling = figure.rate.value / figure.generator_share
    memory = [record["memory"] for record in records]
    figure.pss_kib = max((one.get("pss_kib", 0) for one in memory), default=0)
    figure.pss_peak_kib = max((one.get("pss_peak_kib", 0) for one in memory), default=0)
    figure.body_bytes = records[0].get("body_bytes")
    read = [
        one["load"]["bytes_read"] / one["load"]["completed"]
        for one in records
        if "bytes_read" in one["load"]
    ]
    figure.bytes_per_response = median(read) if read else None


def cpu_us(record: dict[str, Any]) -> float:
    """Return the server's CPU time per request in µs.

    The clocks are read a moment after each event; the quotient of the two spans corrects for it.
    """
    load, usage = record["load"], record["usage"]
    used_s = usage["server_cpu_s"] * load["elapsed_s"] / usage["elapsed_s"]
    return float(used_s * 1e6 / load["completed"])


def services_cpu_us(record: dict[str, Any]) -> float:
    """Return the CPU time of databases per request in µs; 0 without any."""
    load, usage = record["load"], record["usage"]
    used_s = usage.get("services_cpu_s", 0.0) * load["elapsed_s"] / usage["elapsed_s"]
    return float(used_s * 1e6 / load["completed"])


def _fill_latency(figure: Figure, records: list[dict[str, Any]]) -> None:
    figure.latency_ms = _percentiles_ms(records, "latency_histogram")
    lags = [record["load"].get("schedule_lag_us") for record in records]
    if all(lags):
        figure.service_ms = _percentiles_ms(records, "service_histogram")
        figure.lag_p99_ms = median((lag["p99"] or 0.0) / 1e3 for lag in lags if lag)


def _percentiles_ms(records: list[dict[str, Any]], name: str) -> dict[str, Interval]:
    """Return percentiles: the rounds' own, their geometric mean and its interval."""
    histograms = [Histogram.decode(record["load"][name]) for record in records]
    total = sum(histogram.total for histogram in histograms)
    found: dict[str, Interval] = {}
    for percent in PERCENTILES:
        # The tail of fewer values than this is a handful of requests.
        if total * (1 - percent / 100) < TAIL_VALUES_MIN:
            continue
        each = _per_round(
            (record, (histogram.percentile(percent) or 1) / 1e6)
            for record, histogram in zip(records, histograms, strict=True)
        )
        found[f"p{percent:g}"] = interval(list(each.values()))
    return found


def _per_round(pairs: Iterable[tuple[dict[str, Any], float]]) -> dict[int, float]:
    """Return one value per restart: the geometric mean of its runs."""
    found: dict[int, list[float]] = {}
    for record, value in pairs:
        found.setdefault(record["round"], []).append(value)
    return {
        number: geometric_mean(values) if min(values) > 0 else min(values)
        for number, values in found.items()
    }


def _noise(again: dict[Key, list[dict[str, Any]]], figures: dict[Key, Figure]) -> list[Noise]:
    found: list[Noise] = []
    for key, records in again.items():
        own = figures.get(key)
        productive = [record for record in records if record.get("load", {}).get("completed")]
        if own is None or own.verdict.word == FAILED or not productive:
            continue
        rates = _per_round((one, one["load"]["requests_per_s"]) for one in productive)
        ratio = paired_ratio(rates, own.by_round)
        if ratio is not None:
            rounds = sorted(rates.keys() & own.by_round.keys())
            each = tuple(rates[number] / own.by_round[number] for number in rounds)
            found.append(Noise(*key, ratio, each))
    return found


def _outside(results: Results, figures: dict[Key, Figure]) -> list[Outside]:
    """Return what other load generators say, in the order they were asked."""
    groups: dict[tuple[Key, str], list[dict[str, Any]]] = {}
    for record in results.of_kind("outside"):
        groups.setdefault((key_of(record), record["tool"]), []).append(record)
    found: list[Outside] = []
    for (key, tool), records in groups.items():
        counted = [record for record in records if record["fault"] is None]
        faults = tuple(dict.fromkeys(one["fault"] for one in records if one["fault"] is not None))
        own = figures.get(key)
        if not counted or own is None or own.verdict.word == FAILED:
            found.append(Outside(*key, tool, faults=faults))
            continue
        rates = {record["round"]: float(record["requests_per_s"]) for record in counted}
        costs = {record["round"]: float(record["cpu_us"]) for record in counted}
        found.append(
            Outside(
                *key,
                tool,
                paired_ratio(rates, own.by_round),
                paired_ratio(costs, own.cpu_by_round),
                median(record["tool_share"] for record in counted),
                median(
                    one["cpu_us"] * one["requests_per_s"] / 1e6 / one["workers"] for one in counted
                ),
                sum(record["errors"] for record in counted),
                faults,
            )
        )
    return found


def _counts(results: Results) -> dict[Key, Count]:
    """Return the instructions per request by figure; the last count of one is what holds."""
    found: dict[Key, Count] = {}
    for entry in results.counts:
        each = entry["per_request"]
        if entry["fault"] or min(each, default=0.0) <= 0:
            count = Count(fault=entry["fault"] or "nothing was counted")
        else:
            count = Count(sum(each) / len(each), max(each) / min(each) - 1)
        found[key_of(entry)] = count
    return found


def _medians(records: list[dict[str, Any]], name: str) -> dict[str, Any]:
    values: dict[str, list[float]] = {}
    for record in records:
        if record["workers"] == 1 and record.get("manner", "plain") == "plain":
            values.setdefault(record["contestant"], []).append(record[name])
    return {contestant: median(found) for contestant, found in values.items()}


PERCENTILES = (50, 75, 90, 99, 99.9)
TAIL_VALUES_MIN = 100
# Less is what a database does for itself while no request reaches it.
DATABASE_MIN_US = 0.5
