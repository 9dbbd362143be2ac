"""The counters of all workers, and the text that Prometheus scrapes.

Each reactor of a worker counts in its own part of shared memory (``_core.SharedMetrics``); the parts of one
worker are its slot. ``MetricsRegistry`` assigns the slots, adds up those in use, and keeps the counts of
workers that have ended. Counters are sums over all workers since the start of the server; gauges are
reported for each worker that is alive, over its reactors (:func:`merged`).

Names follow Prometheus' conventions: base units, ``_total`` for counters. The number of series depends on the
application's routes (or ``--path-pattern``) and not on the paths that clients request.
"""

from __future__ import annotations

import mmap
import os
import time
from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from citius._core import METRICS, SharedMetrics, __version__
from citius.records import record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

HUNG_S = 10.0
"""A worker whose event loop has not run for this time is not ready."""

STARTING, READY, DRAINING = 0, 1, 2

_STATES: Final = ("starting", "ready", "draining")
_UNFIT: Final = ("failing", "hung", "out of descriptors")

_TALLIES: Final = {
    "connections_accepted": ("citius_connections_accepted", "Connections accepted."),
    "connections_refused": ("citius_connections_refused", "Connections refused with 503."),
    "connections_evicted": (
        "citius_connections_evicted", "Idle connections closed to make room for new ones.",
    ),
    "descriptors_missing": (
        "citius_descriptors_missing", "New connections for which the process had no free descriptor.",
    ),
    "http2_connections": ("citius_http2_connections", "Connections that used HTTP/2."),
    "http3_connections": ("citius_http3_connections", "Connections that used HTTP/3."),
    "webtransport_datagrams_dropped": (
        "citius_webtransport_datagrams_dropped", "Datagrams of WebTransport that were not read in time.",
    ),
    "bytes_received": ("citius_received_bytes", "Bytes read from clients."),
    "bytes_sent": ("citius_sent_bytes", "Bytes written to clients."),
    "requests_cancelled": (
        "citius_http_requests_cancelled", "Requests whose client disconnected before the response's end.",
    ),
    "handler_exceptions": (
        "citius_handler_exceptions", "Exceptions that the application did not handle.",
    ),
    "log_lines_dropped": (
        "citius_access_log_lines_dropped", "Access log lines dropped because the log was too slow or failed.",
    ),
    "tls_handshakes": ("citius_tls_handshakes", "TLS handshakes that completed."),
    "tls_handshakes_resumed": (
        "citius_tls_handshakes_resumed", "TLS handshakes that resumed a session.",
    ),
    "proxy_headers_refused": (
        "citius_proxy_headers_refused",
        "Connections closed because no trusted proxy began them with a PROXY header.",
    ),
    "tls_handshakes_failed": ("citius_tls_handshakes_failed", "TLS handshakes that failed."),
}  # fmt: skip

_OUTCOMES: Final = ("ok", "error", "cancelled")
_OPERATIONS: Final = {
    "pg": "statement",
    "redis": "command",
    "sqlite": "statement",
    "http": "request",
}
_PREFIXES: Final = {"http": "citius_http_client"}
"""Of clients whose kind alone would name something of the server's."""
_OF_CLIENTS: Final = {
    "ok": "", "error": "", "cancelled": "",
    "opened": ("connections_opened", "Connections that were opened."),
    "lost": ("connections_lost", "Connections that ended without being closed by the client."),
    "connect_failed": ("connection_failures", "Attempts to connect that failed."),
    "refused": ("refused", "What was refused because too much waited, or waited for too long."),
}  # fmt: skip
CLUSTER: Final = {
    "connected": "Whether the engine for messages is there.",
    "outages": "How often it was found away.",
    "queued_bytes": "Bytes of messages that wait for it.",
    "messages_sent": "Messages that it has confirmed.",
    "messages_received": "Messages that were delivered here.",
    "messages_lost": "Messages that found the queue full.",
    "messages_duplicate": "Messages that came again and were dropped.",
    "messages_sent_again": "Messages sent again to an engine that had lost its memory.",
    "records_missed": "Messages that were lost for this worker, of which its clients were told.",
    "records_foreign": "Records, cached values and members that no node of this cluster has written.",
    "cache_hits": "Cached values that were found.",
    "cache_misses": "Cached values that were not.",
    "seams_away": "Sessions, limits, caches and topics whose engine did not respond last.",
    "seam_outages": "How often one of them found its engine away.",
    "limits_without_engine": "Requests limited by one server alone, or not at all, for want of the engine.",
}
"""What a worker says of its cluster, since its start; ``citius.cluster.stats.Stats.row`` makes it."""

_GAUGES: Final[dict[str, Callable[[Iterable[int]], int]]] = {
    "beat_at_ms": min, "connections_open": sum, "requests_open": sum, "loop_lag_us": max,
    "descriptors_missing": max, "webtransport_sessions_open": sum, "webtransport_streams_open": sum,
}  # fmt: skip
"""How those of several reactors are combined."""

_LIMITS: Final = {
    "connections_max": ("tallies", "connections_refused"),
    "requests_open_max": ("tallies", "requests_shed"),
    "keep_alive_ms": ("tallies", "keep_alive_over"),
    "write_stall_ms": ("tallies", "write_stalled"),
    "tls_handshake_ms": ("tallies", "tls_handshakes_too_slow"),
    "head_bytes_max": ("faults", "head_too_long"),
    "fields_max": ("faults", "too_many_fields"),
    "target_bytes_max": ("faults", "target_too_long"),
    "body_bytes_max": ("faults", "body_too_long"),
    "trailer_bytes_max": ("faults", "trailers_too_long"),
    "head_read_ms": ("faults", "head_too_slow"),
    "body_rate_min_bytes_per_s": ("faults", "body_too_slow"),
    "h2_stall_bytes_min": ("faults", "stream_stalled"),
}


@record(slots=True)
class Totals:
    """Counters that can be added up."""

    tallies: Counter[str] = field(default_factory=Counter[str])
    faults: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[int] = field(default_factory=Counter[int])
    lag: list[int] = field(default_factory=list[int])
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter[tuple[str, str, int]])
    """By route, method and first digit of the status."""
    durations: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    """By route: one count a bucket, one above them, the sum in microseconds."""
    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """Of remote procedures over HTTP, by route and code."""
    clients: dict[tuple[str, str], dict[str, Any]] = field(default_factory=lambda: {})
    """By kind and label of a client of a database."""

    def add(self, snapshot: dict[str, Any]) -> None:
        """Add the counts of one worker."""
        self.tallies.update(snapshot["tallies"])
        self.faults.update(snapshot["faults"])
        self.codes.update(dict(snapshot["codes"]))
        self.lag = _added(self.lag, snapshot["lag"])
        for label, counts, histogram, calls in snapshot["classes"]:
            for code, count in calls:
                self.calls[label, code] += count
            for method, status_class, count in counts:
                self.requests[label, method, status_class] += count
            self.durations[label] = _added(self.durations.get(label, []), histogram)
        for client in snapshot["clients"]:
            key = client["kind"], client["label"]
            so_far = self.clients.get(key, {})
            counts = {name: so_far.get(name, 0) + client[name] for name in _OF_CLIENTS}
            durations = _added(so_far.get("durations", []), client["durations"])
            self.clients[key] = {**counts, "durations": durations}

    def merged(self, snapshots: list[dict[str, Any]]) -> Totals:
        """A new object: these counts plus those of ``snapshots``."""
        made = Totals(
            Counter(self.tallies), Counter(self.faults), Counter(self.codes), list(self.lag),
            Counter(self.requests), {label: list(values) for label, values in self.durations.items()},
            Counter(self.calls), dict(self.clients),
        )  # fmt: skip
        for snapshot in snapshots:
            made.add(snapshot)
        return made


def merged(snapshots: list[dict[str, Any]]) -> dict[str, Any]:
    """One snapshot of the reactors of a worker, the first of which is the worker's own.

    Counts are added up. Of the gauges, connections and requests are added up too; of heartbeats the oldest
    counts, of delays and missing descriptors the largest, and all else is the worker's own.
    """
    first = snapshots[0]
    # A reactor that has not begun has no process.
    begun = [one for one in snapshots if one["gauges"]["pid"]]
    if len(begun) < 2:
        return first
    totals = Totals()
    for snapshot in begun:
        totals.add(snapshot)
    gauges = dict(first["gauges"])
    for name, combine in _GAUGES.items():
        gauges[name] = combine(one["gauges"][name] for one in begun)
    counts: dict[str, list[tuple[str, int, int]]] = {label: [] for label in totals.durations}
    for (label, method, status_class), count in totals.requests.items():
        counts[label].append((method, status_class, count))
    calls: dict[str, list[tuple[str, int]]] = {label: [] for label in totals.durations}
    for (label, code), count in totals.calls.items():
        calls[label].append((code, count))
    return {
        "tallies": dict(totals.tallies), "gauges": gauges, "faults": dict(totals.faults),
        "codes": list(totals.codes.items()), "lag": totals.lag, "checks_text": first["checks_text"],
        "classes": [
            (label, counts[label], histogram, calls[label])
            for label, histogram in totals.durations.items()
        ],
        "clients": _merged_clients(one["clients"] for one in begun),
    }  # fmt: skip


def _merged_clients(found: Iterable[Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Those of the reactors of a worker; what a client of several counts is added up."""
    made: dict[tuple[str, str], dict[str, Any]] = {}
    for clients in found:
        for client in clients:
            key = client["kind"], client["label"]
            so_far = made.setdefault(key, {"kind": key[0], "label": key[1], "durations": []})
            for name, value in client.items():
                if name == "durations":
                    so_far[name] = _added(so_far[name], value)
                elif name not in {"kind", "label"}:
                    so_far[name] = so_far.get(name, 0) + value
    return list(made.values())


class MetricsRegistry:
    """The slots of all workers. The supervisor owns it, or the only worker.

    Args:
        slots: Workers at once.
        reactors: Reactors of a worker.
    """

    def __init__(self, slots: int = 1, reactors: int = 1) -> None:
        self._reactors = reactors
        parts = slots * reactors
        self.shared = SharedMetrics(mmap.mmap(-1, parts * SharedMetrics.SLOT_BYTES))
        self.deferred_calls = memoryview(mmap.mmap(-1, slots * 8)).cast("Q")
        """Deferred calls of each slot's worker that are not done. Python counts them, so they have a page of
        their own; a worker writes its number only, in one piece."""
        self.cluster = memoryview(mmap.mmap(-1, slots * 8 * len(CLUSTER))).cast("Q")
        """The counters of clusters (``CLUSTER``) of each slot's worker; Python counts them, too."""
        self._free = list(range(slots - 1, -1, -1))
        self._used: dict[int, int] = {}
        self._dead = Totals()
        self._cpu_s: dict[int, float] = {}
        """CPU time of the processes that had a slot before, so that a slot's counter never falls."""
        self._started_at = time.time()
        self.restarts: Counter[str] = Counter()
        """Workers that were replaced, by reason."""
        self.displaced: Callable[[], dict[str, int]] = dict
        """Counts of what had no room in memory of all workers, by its table."""

    def assign(self) -> int | None:
        """A clean slot for a new worker; ``None`` if there is none left."""
        if not self._free:
            return None
        slot = self._free.pop()
        self._used[slot] = 0
        return slot

    def part(self, slot: int, reactor: int) -> int | None:
        """Where in ``shared`` a reactor of the worker of a slot counts; 0 is the worker's own.

        ``None``: there were fewer reactors when the server was started. One more is not among the metrics.
        """
        return slot * self._reactors + reactor if reactor < self._reactors else None

    def _parts(self, slot: int) -> range:
        return range(slot * self._reactors, (slot + 1) * self._reactors)

    def _read(self, slot: int) -> dict[str, Any]:
        return merged([self.shared.read(part) for part in self._parts(slot)])

    def retire(self, slot: int | None, cpu_s: float = 0.0) -> None:
        """Free the slot of a worker that has ended; its counts and CPU time stay in the totals."""
        if slot is None or slot not in self._used:
            return
        self._cpu_s[slot] = self._cpu_s.get(slot, 0.0) + cpu_s
        del self._used[slot]
        self._dead.add(self._read(slot))
        for part in self._parts(slot):
            self.shared.clear(part)
        self.deferred_calls[slot] = 0
        self.write_cluster(slot, [0] * len(CLUSTER))
        self._free.append(slot)

    def write_cluster(self, slot: int, counts: Sequence[int]) -> None:
        """Note the counters of clusters of a slot's worker."""
        for at, count in enumerate(counts):
            self.cluster[slot * len(CLUSTER) + at] = count

    def snapshots(self) -> dict[int, dict[str, Any]]:
        """The counts of the workers that are alive, by slot."""
        return {slot: self._read(slot) for slot in sorted(self._used)}

    def totals(self) -> Totals:
        """The counts of all workers since the start of the server."""
        return self._dead.merged(list(self.snapshots().values()))

    def health(self, expected: int) -> tuple[bool, dict[str, Any]]:
        """Whether ``expected`` workers are ready and none is failing, with details for each worker."""
        workers: list[dict[str, Any]] = []
        ready = 0
        for snapshot in self.snapshots().values():
            gauges = snapshot["gauges"]
            state = _state(gauges)
            entry: dict[str, Any] = {"pid": gauges["pid"], "state": state}
            if snapshot["checks_text"]:
                entry["checks"] = snapshot["checks_text"]
            if state == "ready" and gauges["checks"] == 2:
                entry["state"] = "failing"
            elif state == "ready" and gauges["descriptors_missing"]:
                entry["state"] = "out of descriptors"
            ready += entry["state"] == "ready"
            workers.append(entry)
        is_ready = ready >= expected and not any(w["state"] in _UNFIT for w in workers)
        return is_ready, {
            "status": "ready" if is_ready else "not ready", "expected": expected, "ready": ready,
            "workers": workers,
        }  # fmt: skip

    def render(self, *, openmetrics: bool = False) -> str:
        """All metrics in Prometheus' text format, or in OpenMetrics'."""
        snapshots = self.snapshots()
        totals = self._dead.merged(list(snapshots.values()))
        out = _Exposition(openmetrics)
        out.family("citius_build", "info", "The version of the server.")
        out.sample("citius_build_info", {"version": __version__}, 1)
        _render_requests(out, totals)
        for name, (metric, text) in _TALLIES.items():
            out.family(metric, "counter", text)
            out.sample(f"{metric}_total", {}, totals.tallies[name])
        out.family("citius_limit_hits", "counter", "How often each limit was reached.")
        for limit, (kind, name) in _LIMITS.items():
            count = getattr(totals, kind)[name]
            out.sample("citius_limit_hits_total", {"limit": limit}, count)
        out.family(
            "citius_faults",
            "counter",
            "Violations of the protocol by clients or the application, by rule.",
        )
        for fault in METRICS["faults"]:
            out.sample("citius_faults_total", {"fault": fault}, totals.faults[fault])
        out.family("citius_loop_lag_seconds", "histogram", "Delay of the event loop's timers.")
        out.histogram("citius_loop_lag_seconds", {}, totals.lag)
        _render_workers(out, snapshots, self._cpu_s)
        out.family("citius_deferred_calls", "gauge", "Deferred calls that wait or run.")
        for slot in snapshots:
            out.sample("citius_deferred_calls", {"worker": str(slot)}, self.deferred_calls[slot])
        _render_clients(out, snapshots, totals)
        self._render_cluster(out, list(snapshots))
        out.family("citius_worker_restarts", "counter", "Workers that were replaced, by reason.")
        for reason in sorted({"died", "hung", "recycled", "asked", *self.restarts}):
            out.sample("citius_worker_restarts_total", {"reason": reason}, self.restarts[reason])
        out.family(
            "citius_start_time_seconds", "gauge", "Start time of the server, in seconds since 1970."
        )
        out.sample("citius_start_time_seconds", {}, self._started_at)
        return out.text()

    def _render_cluster(self, out: _Exposition, slots: list[int]) -> None:
        """What workers have written that have a cluster, and what has no room in memory of all workers."""
        counts = self.displaced()
        if any(counts.values()):
            out.family(
                "citius_displaced", "counter",
                "Values in memory of all workers that newer ones displaced before they expired.",
            )  # fmt: skip
            for table, count in counts.items():
                out.sample("citius_displaced_total", {"table": table}, count)
        width = len(CLUSTER)
        rows = {slot: list(self.cluster[slot * width : (slot + 1) * width]) for slot in slots}
        used = {slot: row for slot, row in rows.items() if any(row)}
        for at, (name, text) in enumerate(CLUSTER.items() if used else ()):
            out.family(f"citius_cluster_{name}", "gauge", text)
            for slot, row in used.items():
                out.sample(f"citius_cluster_{name}", {"worker": str(slot)}, row[at])


def _render_requests(out: _Exposition, totals: Totals) -> None:
    out.family(
        "citius_http_requests",
        "counter",
        "Completed requests, by route, method and class of the status code.",
    )
    for (route, method, status_class), count in sorted(totals.requests.items()):
        labels = {"route": route, "method": method, "status": f"{status_class}xx"}
        out.sample("citius_http_requests_total", labels, count)
    out.family(
        "citius_http_responses", "counter",
        "Responses by status code, including those to invalid requests.",
    )  # fmt: skip
    for code, count in sorted(totals.codes.items()):
        out.sample("citius_http_responses_total", {"code": str(code)}, count)
    name = "citius_http_request_duration_seconds"
    out.family(
        name, "histogram", "Time from the header section of a request to the end of its response."
    )
    for route, histogram in sorted(totals.durations.items()):
        out.histogram(name, {"route": route}, histogram)
    if totals.calls:
        out.family(
            "citius_rpc_calls", "counter",
            "Calls of remote procedures over HTTP, by route and code.",
        )  # fmt: skip
        for (route, code), count in sorted(totals.calls.items()):
            out.sample("citius_rpc_calls_total", {"route": route, "code": code}, count)


def _render_workers(
    out: _Exposition, snapshots: dict[int, dict[str, Any]], cpu_s_before: Mapping[int, float]
) -> None:
    states = Counter(_state(snapshot["gauges"]) for snapshot in snapshots.values())
    out.family("citius_workers", "gauge", "Workers by state.")
    for state in (*_STATES, "hung"):
        out.sample("citius_workers", {"state": state}, states[state])
    families = (
        ("citius_connections_open", "Open connections.", "connections_open", 1),
        ("citius_http_requests_open", "Requests whose responses are not complete.", "requests_open", 1),
        ("citius_webtransport_sessions_open", "Open WebTransport sessions.", "webtransport_sessions_open", 1),
        ("citius_webtransport_streams_open", "Open streams in them.", "webtransport_streams_open", 1),
        ("citius_blocking_queue_length", "Requests that wait for a thread.", "queue_length", 1),
        ("citius_blocking_queue_age_seconds", "Waiting time of the oldest of them.", "queue_age_us", 1e-6),
        ("citius_worker_loop_lag_seconds", "Last measured delay of the event loop.", "loop_lag_us", 1e-6),
    )  # fmt: skip
    for name, text, gauge, factor in families:
        out.family(name, "gauge", text)
        for slot, data in snapshots.items():
            value = data["gauges"][gauge]
            out.sample(name, {"worker": str(slot)}, value * factor if value else 0)
    stats = {slot: _process(data["gauges"]["pid"]) for slot, data in snapshots.items()}
    out.family(
        "citius_worker_resident_memory_bytes", "gauge", "Resident set size of the worker process."
    )
    for slot, (rss_bytes, _) in stats.items():
        out.sample("citius_worker_resident_memory_bytes", {"worker": str(slot)}, rss_bytes)
    out.family(
        "citius_worker_cpu_seconds",
        "counter",
        "CPU time of the worker process and of its predecessors in the slot.",
    )
    for slot, (_, cpu_s) in stats.items():
        total_s = cpu_s_before.get(slot, 0.0) + cpu_s
        out.sample("citius_worker_cpu_seconds_total", {"worker": str(slot)}, total_s)


def _render_clients(out: _Exposition, snapshots: dict[int, dict[str, Any]], totals: Totals) -> None:
    """What clients of databases and services count; nothing where there are none."""
    for kind in sorted({kind for kind, _ in totals.clients}):
        clients = sorted((label, it) for (of, label), it in totals.clients.items() if of == kind)
        operation, prefix = _OPERATIONS[kind], _PREFIXES.get(kind, f"citius_{kind}")
        name = f"{prefix}_{operation}s"
        out.family(name, "counter", f"Executed {operation}s by outcome.")
        for label, client in clients:
            for outcome in _OUTCOMES:
                labels = {"pool": label, "outcome": outcome}
                out.sample(f"{name}_total", labels, client[outcome])
        name = f"{prefix}_{operation}_duration_seconds"
        out.family(name, "histogram", f"Time from the call of a {operation} to its result.")
        for label, client in clients:
            out.histogram(name, {"pool": label}, client["durations"])
        for counter, described in _OF_CLIENTS.items():
            if described:
                name, text = f"{prefix}_{described[0]}", described[1]
                out.family(name, "counter", text)
                for label, client in clients:
                    out.sample(f"{name}_total", {"pool": label}, client[counter])
        alive = [
            ({"worker": str(slot), "pool": client["label"]}, client)
            for slot, snapshot in snapshots.items()
            for client in snapshot["clients"]
            if client["kind"] == kind
        ]
        out.family(f"{prefix}_connections", "gauge", "Open connections by state.")
        for labels, client in alive:
            for state in ("idle", "used"):
                out.sample(f"{prefix}_connections", {**labels, "state": state}, client[state])
        out.family(
            f"{prefix}_queue_length", "gauge", f"What waits for a connection ({operation}s)."
        )
        for labels, client in alive:
            out.sample(f"{prefix}_queue_length", labels, client["queued"])


class _Exposition:
    """Lines of the text format, in the order of their families."""

    def __init__(self, openmetrics: bool) -> None:
        self._openmetrics = openmetrics
        self._lines: list[str] = []

    def family(self, name: str, kind: str, text: str) -> None:
        """Begin a family: its HELP and TYPE lines."""
        if not self._openmetrics:
            # The older format names counters with their suffix, and knows no infos.
            name, kind = {
                "counter": (f"{name}_total", kind),
                "info": (f"{name}_info", "gauge"),
            }.get(kind, (name, kind))
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]

    def sample(self, name: str, labels: dict[str, str], value: float) -> None:
        """Add the line of one series."""
        inner = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        shown = f"{{{inner}}}" if inner else ""
        self._lines.append(f"{name}{shown} {_number(value)}")

    def histogram(self, name: str, labels: dict[str, str], values: list[int]) -> None:
        """Add the series of a histogram; ``values`` as in a snapshot."""
        *counts, sum_us = values or [0] * (len(METRICS["buckets_us"]) + 2)
        so_far = 0
        for end_us, count in zip((*METRICS["buckets_us"], None), counts, strict=True):
            so_far += count
            end = "+Inf" if end_us is None else _number(end_us / 1e6)
            self.sample(f"{name}_bucket", {**labels, "le": end}, so_far)
        self.sample(f"{name}_sum", labels, sum_us / 1e6)
        self.sample(f"{name}_count", labels, so_far)

    def text(self) -> str:
        """The complete text."""
        end = ["# EOF"] if self._openmetrics else []
        return "\n".join([*self._lines, *end]) + "\n"


def _state(gauges: dict[str, int]) -> str:
    late_ms = time.monotonic() * 1000 - gauges["beat_at_ms"]
    if gauges["state"] == READY and late_ms > HUNG_S * 1000:
        return "hung"
    return _STATES[gauges["state"]]


def _process(pid: int) -> tuple[int, float]:
    """Resident bytes and CPU seconds of a process; zeros if it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        page_bytes, ticks_per_s = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
        return int(fields[21]) * page_bytes, (int(fields[11]) + int(fields[12])) / ticks_per_s
    except (OSError, IndexError, ValueError):
        return 0, 0.0


def _added(one: list[int], other: list[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)] if one else list(other)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}" if value < 1e9 else repr(value)
