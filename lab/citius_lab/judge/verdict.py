"""The gates: a figure and its records in, a verdict out.

``failed``: there is no number worth showing. ``suspect``: the number may be right, do not build on
it. ``valid``: otherwise. Each gate is one function that yields reasons; thresholds are at the end.

A rate and a cost (CPU time per request) are judged by the gates of ``RATE`` and of ``COST``: what
keeps a server from running takes requests per second away from it, and no CPU time per request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab.judge.figures import FAILED, SUSPECT, VALID, Figure, Reason, Verdict
from citius_lab.judge.histogram import Histogram
from citius_lab.judge.statistics import interval, median, restarts_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Records = Sequence[dict[str, Any]]
    Gate = Callable[[Figure, Records, dict[str, Any]], Iterable[Reason]]


def judge(
    figure: Figure,
    records: Records,
    series: dict[str, Any],
    faults: Sequence[str],
    gates: Sequence[Gate],
) -> Verdict:
    """Return the verdict on one quantity of a figure, from the measurements that count.

    ``faults`` is what kept measurements from being made; ``gates`` are ``RATE`` or ``COST``.
    """
    failures = [*map(Reason, faults), *_failures(figure)]
    if failures:
        return Verdict(FAILED, tuple(failures))
    doubts = [reason for gate in gates for reason in gate(figure, records, series)]
    return Verdict(SUSPECT, tuple(doubts)) if doubts else Verdict(VALID)


def limiter(figure: Figure, records: Records, series: dict[str, Any]) -> str | None:
    """Return what kept the rate from being higher; ``None`` if nothing is found."""
    usage = [record["usage"] for record in records]
    busy = median(1 - use["server_cpus_idle_share"] for use in usage)
    if max(figure.server_share or 0.0, busy) >= SATURATED_MIN:
        return "server"
    if figure.achieved is not None and figure.achieved >= _achieved_min(figure, series):
        return "ramp" if series["load"]["pace"] == "users" else "offered rate"
    if _network_limits(records):
        return NETWORK
    if (figure.generator_share or 0.0) + _lab_share(records) > GENERATOR_MAX:
        return "generator"
    if _busy_generators(records):
        return "generator"
    if _has_background(records):
        return BACKGROUND
    return None


def _lab_share(records: Records) -> float:
    """Return what the lab's other processes, such as a relay, used of the generator's CPU."""
    return median(record["usage"].get("lab_share", 0.0) for record in records)


def _network_limits(records: Records) -> list[str]:
    """Return which limits of the network most runs over a cluster reached."""
    counts: dict[str, int] = {}
    said: dict[str, str] = {}
    for record in records:
        for one in record.get("network_limits", ()):
            where = one.rpartition(": ")[0]
            counts[where] = counts.get(where, 0) + 1
            said[where] = one
    return [said[where] for where, count in counts.items() if 2 * count > len(records)]


def _of_generators(records: Records, name: str) -> dict[str, float]:
    """Return the median over runs of what each generator of a cluster says, by worker."""
    found: dict[str, list[float]] = {}
    for record in records:
        for one in record.get("generators", ()):
            if one.get(name) is not None:
                found.setdefault(one["worker"], []).append(one[name])
    return {worker: median(values) for worker, values in found.items()}


def _busy_generators(records: Records) -> dict[str, float]:
    """Return the generators whose machine has no CPU left for them, with what is idle."""
    idle = _of_generators(records, "cpu_idle_share")
    return {worker: share for worker, share in idle.items() if share < GENERATOR_IDLE_MIN}


def _has_background(records: Records) -> bool:
    """Tell whether other requests were under way, which count for no rate."""
    return any(record["load"].get("background") for record in records)


def error_share(load: dict[str, Any]) -> float:
    """Return the share of a run's requests that failed or were never answered."""
    # In a closed loop that time ends, requests under way at the end are no errors.
    lost = load.get("unanswered", 0) if load.get("options", {}).get("pace") == "users" else 0
    n_errors = sum(load["errors"].values()) + lost
    return n_errors / max(n_errors + load["completed"], 1)


# --- failures -------------------------------------------------------------------------------------


def _failures(figure: Figure) -> Iterable[Reason]:
    wrong = sum(figure.errors.get(kind, 0) for kind in ("status", "length", "content", "protocol"))
    if figure.completed == 0:
        yield Reason("no valid answer")
    if wrong:
        yield Reason("wrong answers under load", error_words(figure.errors))
    elif figure.error_share > ERRORS_MAX:
        kind = f"more than {ERRORS_MAX:.1%} errors"
        yield Reason(kind, f"{figure.error_share:.2%}, {error_words(figure.errors)}")


def error_words(errors: dict[str, int]) -> str:
    """Return the errors that happened, by class."""
    return ", ".join(f"{count} {kind}" for kind, count in errors.items() if count)


def remembered(ratios: Sequence[float]) -> str | None:
    """Return what is wrong if repeated requests cost less than fresh ones of equal work, else ``None``."""
    ratio = interval(ratios)
    if ratio.high is None or ratio.low is None or ratio.high > REMEMBERED_MAX:
        return None
    return (
        f"answers a repeated request from memory: it takes ×{ratio.value:.2f} ({ratio.low:.2f} to "
        f"{ratio.high:.2f}) of the CPU time of one that it has not seen"
    )


# --- doubts ---------------------------------------------------------------------------------------


def _steal(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """The hypervisor ran another machine; many kernels count that as the process's own time."""
    share = median(record["usage"]["steal_share"] for record in records)
    if share > STEAL_MAX:
        yield Reason("the hypervisor took CPU time away", f"{share:.0%} of a CPU")


def _throttled(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """A quota stopped server and lab for a part of each period."""
    usage = [record["usage"] for record in records]
    share = median(use.get("throttled_s", 0.0) / use["elapsed_s"] for use in usage)
    if share > THROTTLED_MAX:
        yield Reason("the cgroup's CPU quota held everything back", f"{share:.0%} of the time")


def _foreign(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Programs that are not of the lab used the machine."""
    share = median(record["usage"]["foreign_share"] for record in records)
    if share > FOREIGN_MAX:
        yield Reason("other programs kept a CPU busy", f"{share:.0%}")


def _shared(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Server and generator competed for CPUs."""
    if figure.shares_cpus:
        yield Reason("server and generator share CPUs", "the rate is of both")


def _limits(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Something else than the server was the limit, or nothing that could be named."""
    if figure.limiter in ("server", *NO_CAPACITY):
        return
    foreign = median(record["usage"]["foreign_share"] for record in records)
    if foreign > FOREIGN_MAX:
        return  # then nothing can be said about what else was the limit
    shares = f"server {figure.server_share:.0%}, generator {figure.generator_share:.0%} of a CPU"
    if figure.limiter == NETWORK:
        yield Reason("limited by the network", "; ".join(_network_limits(records)))
    elif figure.limiter == "generator":
        yield Reason(
            "limited by the load generator", f"{shares}; its ceiling {figure.ceiling:.0f}/s"
        )
    elif figure.achieved is None and median(r["load"]["elapsed_s"] for r in records) >= TINY_S:
        yield Reason("server not saturated, and no limiter named", shares)


def _generators(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """One of several generators was at a limit of its own, which the sum may hide."""
    for worker, share in _of_generators(records, "cpu_share").items():
        if share > GENERATOR_MAX:
            yield Reason("a generator had no CPU time left", f"{worker}: {share:.0%}")
    for worker, share in _busy_generators(records).items():
        yield Reason("a generator's machine was busy", f"{worker}: {share:.0%} idle")
    for worker, share in _of_generators(records, "steal_share").items():
        if share > STEAL_MAX:
            yield Reason("the hypervisor took CPU time from a generator", f"{worker}: {share:.0%}")
    latencies_us = _of_generators(records, "latency_p99_us")
    for worker, lag_us in _of_generators(records, "lag_p99_us").items():
        allowed_us = max(LAG_MIN_MS * 1e3, LAG_SHARE_MAX * latencies_us.get(worker, 0.0))
        if lag_us > allowed_us:
            detail = f"{worker}: p99 {lag_us / 1e3:.1f} ms late"
            yield Reason("a generator kept its schedule badly", detail)
    for worker, late_us in _of_generators(records, "late_us").items():
        if abs(late_us) > TOGETHER_MAX_MS * 1e3:
            detail = f"{worker}: {late_us / 1e3:+.1f} ms"
            yield Reason("generators did not begin together", detail)


def _offered(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """An offered rate was not kept, or the generator itself was late."""
    if figure.achieved is None:
        return
    if figure.achieved < _achieved_min(figure, series):
        yield Reason("the offered rate was not kept", f"{figure.achieved:.1%} of it was answered")
    unsent = sum(record["load"].get("unsent", 0) for record in records)
    if unsent > UNSENT_MAX * (unsent + figure.completed):
        share = unsent / (unsent + figure.completed)
        yield Reason("requests were due and never sent", f"{share:.1%}")
    p99 = figure.latency_ms.get("p99") or figure.latency_ms.get("p50")
    if figure.lag_p99_ms is not None and p99 is not None:
        allowed = max(LAG_MIN_MS, LAG_SHARE_MAX * p99.value)
        if figure.lag_p99_ms > allowed:
            yield Reason(
                "the generator kept its schedule badly", f"p99 {figure.lag_p99_ms:.1f} ms late"
            )


def _achieved_min(figure: Figure, series: dict[str, Any]) -> float:
    """Return the share that counts as kept; of random arrivals a window may have fewer by chance."""
    chance = 0.0
    if series["load"]["pace"] == "poisson" and figure.completed:
        chance = 3 / (figure.completed / max(figure.rounds, 1)) ** 0.5
    return ACHIEVED_MIN - chance


def _little(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Rate × mean latency has to be the requests in flight (Little's law), in a closed loop.

    A request counts where it ends, also one that began before the window: with few requests per
    connection the edges alone explain a gap, so it counts from ``LITTLE_REQUESTS_MIN`` on.
    """
    if series["load"]["pace"] != "closed" or _has_background(records) or _senders(series):
        return
    gap = 0.0
    for record in records:
        in_flight = record["connections"] * record["pipeline"]
        load = record["load"]
        if load["completed"] >= LITTLE_REQUESTS_MIN * in_flight:
            mean_s = (load["latency_us"]["mean"] or 0.0) / 1e6
            gap = max(gap, abs(load["requests_per_s"] * mean_s / in_flight - 1))
    if gap > LITTLE_MAX:
        kind = "rate × latency is not the requests in flight (Little's law)"
        yield Reason(kind, f"{gap:.0%} off")


def _senders(series: dict[str, Any]) -> int:
    """Return how many connections send, of a message that the server passes to all; else 0."""
    senders: int = series["load"].get("senders", 0)
    return senders


def _copies(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Some copies of a broadcast never came; the generator cannot tell whose they were."""
    if not _senders(series):
        return
    came = sum(record["load"]["completed"] for record in records)
    due = sum(record["load"]["sent"] * record["connections"] for record in records)
    if came < COPIES_MIN * due:
        yield Reason("copies of messages never came", f"{came} of {due}")


def _size(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Too short, too few, too far apart."""
    if figure.rounds < ROUNDS_MIN:
        yield Reason(f"fewer than {ROUNDS_MIN} restarts", str(figure.rounds))
    if figure.counted_s < COUNTED_MIN_S:
        kind = f"counted for less than {COUNTED_MIN_S:g} s in all"
        yield Reason(kind, f"{figure.counted_s:.1f} s")
    fewest = min(record["load"]["completed"] for record in records)
    if fewest < COMPLETED_MIN:
        yield Reason(f"fewer than {COMPLETED_MIN} requests in a window", str(fewest))


def _short_count(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Opening the connections, and the wait for the last of them, are much of such a run."""
    shortest_s = min(record["load"]["elapsed_s"] for record in records)
    if series["load"]["requests"] is not None and shortest_s < COUNT_MIN_S:
        kind = f"a count that took less than {COUNT_MIN_S:g} s"
        yield Reason(kind, f"{shortest_s:.2f} s")


def _noisy_rate(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Restarts differ too much in what they answered."""
    # At a fraction of its capacity a rate varies as the capacity does, and the capacity says so.
    if series["load"]["fraction"] is None:
        yield from _noise("", figure.rates)


def _noisy_cost(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Restarts differ too much in what a request cost."""
    yield from _noise("in CPU time ", tuple(figure.cpu_by_round.values()))


def _noise(what: str, values: Sequence[float]) -> Iterable[Reason]:
    spread = interval(values).spread if values else None
    if spread is not None and spread > SPREAD_MAX:
        n_restarts = restarts_for(values, SPREAD_MAX, RESTARTS_SAID_MAX)
        many = f"more than {RESTARTS_SAID_MAX}" if n_restarts is None else str(n_restarts)
        detail = f"±{spread:.0%}; {many} restarts would do"
        yield Reason(f"noisy: restarts differ {what}by more than ±{SPREAD_MAX:.0%}", detail)


def _no_cost(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """The clocks of the server's processes did not move."""
    if figure.cpu_us is None:
        yield Reason("no CPU time of the server was seen")


def _accept_queue(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Connections waited for the kernel, not for the server.

    Where slow requests are a part of the load, a step at their length is theirs.

    A full accept queue drops the SYN; the client sends it again after 1 s, then after 3 s in all.
    """
    overflows = sum(
        max(record.get("net", {}).get("listen_overflows", 0),
            record.get("net", {}).get("listen_drops", 0))
        for record in records
    )  # fmt: skip
    if overflows:
        yield Reason("the accept queue overflowed", f"{overflows} times")
    late = sum(record["load"].get("connects_over_1s", 0) for record in records)
    if late:
        yield Reason("connections took a second or more: SYNs sent again", f"{late}")
    if _has_background(records):
        return
    merged = Histogram()
    for record in records:
        merged.merge(Histogram.decode(record["load"]["latency_histogram"]))
    steps = syn_steps(merged)
    if steps:
        yield Reason("latencies step at 1 s or 3 s: SYNs sent again, not the server", steps)


def syn_steps(histogram: Histogram) -> str:
    """Return where a histogram in ns has the steps of SYN retransmissions, empty if it has none.

    A step is a cluster just after 1 s or 3 s with next to nothing before it.
    """
    found: list[str] = []
    for at_s, from_s in ((1.0, 0.55), (3.0, 2.0)):
        before = histogram.between(from_s * 1e9, at_s * 0.99e9)
        after = histogram.between(at_s * 0.99e9, at_s * 1.45e9)
        if after >= SYN_VALUES_MIN and after >= SYN_FACTOR * before:
            found.append(f"{after} answers after {at_s:g} s, {before} in the time before")
    return "; ".join(found)


def _connections(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """The connections that were asked for were not there, or some of them got nothing."""
    loads = [record["load"] for record in records]
    failures = [load.get("connect_failures", {}) for load in loads]
    for name, what in LOCAL_FAILURES.items():
        if n_failures := sum(failure.get(name, 0) for failure in failures):
            yield Reason(f"this machine had no free {what}: not the server", f"{n_failures} times")
    if series["load"]["pace"] != "closed" or not series["load"]["keep_alive"]:
        return
    lost = sum(load.get("connections_lost", 0) for load in loads)
    if lost > LOST_MAX * figure.completed:
        detail = f"{lost} in {figure.completed} requests"
        yield Reason("the server ended connections that were to be kept", detail)
    none: dict[str, int] = {}
    worst = max(
        (load["connections"] for load in loads if load.get("connections")),
        key=lambda one: one["idle"] + one["asked"] - one["open_max"],
        default=none,
    )
    enough = figure.completed >= LITTLE_REQUESTS_MIN * figure.connections * len(records)
    if worst and enough and worst["open_max"] < worst["asked"]:
        yield Reason("fewer connections than asked for", f"{worst['open_max']} of {worst['asked']}")
    if worst and enough and worst["idle"]:
        yield Reason("some connections got no answer", f"{worst['idle']} of {worst['asked']}")


def _resumed(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Connections are replaced by ones that resume a session: each of them, and after so many requests."""
    limit = series["load"].get("requests_per_connection")
    if not limit or not series["load"]["tls"]:
        return
    if figure.handshakes_resumed < RESUMED_MIN * figure.handshakes or not figure.handshakes:
        yield Reason(
            "not every handshake resumed a session",
            f"{figure.handshakes_resumed} of {figure.handshakes}",
        )


def _unchecked(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """Every run has to be checked before, during and after."""
    loose = sum("after" not in record.get("checked", ()) for record in records)
    if loose:
        yield Reason("answers were not checked before, during and after", f"{loose} runs")


def _never_steady(figure: Figure, records: Records, series: dict[str, Any]) -> Iterable[Reason]:
    """The rate still moved when patience ended."""
    found = figure.warm_up
    if found is not None and found["steady_after_s"] is None:
        yield Reason("never steady while it was watched", f"{found['watched_s']:.1f} s")


# What counts requests wrongly, or too few of them, makes both quantities doubtful.
COUNTING: tuple[Gate, ...] = (
    _steal,
    _little,
    _copies,
    _size,
    _connections,
    _resumed,
    _unchecked,
    _never_steady,
)
RATE: tuple[Gate, ...] = (
    *COUNTING,
    _throttled,
    _foreign,
    _limits,
    _generators,
    _offered,
    _short_count,
    _noisy_rate,
    _accept_queue,
    _shared,
)
# A server that waits, for a CPU or for requests, is charged nothing for it.
COST: tuple[Gate, ...] = (*COUNTING, _no_cost, _noisy_cost)

# A limiter in words: a link, a device, connection tracking.
NETWORK = "network"
# The requests behind which the others wait.
BACKGROUND = "slow requests"
# What limits a rate that says nothing about the server's capacity.
NO_CAPACITY = ("ramp", "offered rate", BACKGROUND)
ERRORS_MAX = 0.001
SATURATED_MIN = 0.90
GENERATOR_MAX = 0.80
# Of the CPUs of a generator's machine, where the load comes from other machines.
GENERATOR_IDLE_MIN = 0.05
TOGETHER_MAX_MS = 10.0
ACHIEVED_MIN = 0.99
# The last arrivals of a window may be under way.
UNSENT_MAX = 0.001
# Of the p99 latency that is reported; lags below LAG_MIN_MS are the kernel's timer.
LAG_SHARE_MAX = 0.25
LAG_MIN_MS = 1.0
# Of one CPU. Below it a busy desktop or a cron job is lost in the interval.
FOREIGN_MAX = 0.10
STEAL_MAX = 0.02
THROTTLED_MAX = 0.01
LITTLE_MAX = 0.15
# Copies of the messages that were under way when the window ended are the rest.
COPIES_MIN = 0.95
LITTLE_REQUESTS_MIN = 20
# Of the requests. Servers may end a connection after some hundred, and Apache does after a hundred.
LOST_MAX = 0.02
ROUNDS_MIN = 3
COUNTED_MIN_S = 1.0
COUNT_MIN_S = 5.0
# Shorter runs are flagged for that; who was busy in them is not to be told.
TINY_S = 0.2
COMPLETED_MIN = 24
SPREAD_MAX = 0.25
# A noisy figure says how many restarts it would take, up to so many.
RESTARTS_SAID_MAX = 100
# The first connection of each place has no session yet; it may end within the window.
RESUMED_MIN = 0.98
LOCAL_FAILURES = {"no_local_port": "port", "no_descriptor": "file descriptor"}
# Repeated requests are a little cheaper on honest servers, too: caches of the processor, of header sections.
REMEMBERED_MAX = 0.6
SYN_VALUES_MIN = 3
SYN_FACTOR = 5
