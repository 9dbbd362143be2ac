"""Records made of text alone, in the shape of RECORDS.md, for tests of what reads them."""

from __future__ import annotations

from functools import cache
from typing import Any

from fake_load import encode_histogram

from citius_lab import paths
from citius_lab.definitions import contestants, experiments
from citius_lab.definitions.protocols import Load, Series
from citius_lab.measure import plan
from citius_lab.record import Results

CLOSED = Series("closed", "closed", "closed loop", Load(), ("hello", "fibonacci"))
PIPELINED = Series(
    "pipelined", "pipelined", "pipelined", Load(pipeline=24), ("hello",), beside="closed"
)
SECTION = "trial/closed"


@cache
def own_experiments() -> dict[str, experiments.Experiment]:
    """The lab's own experiments."""
    found = contestants.load([paths.lab_root() / "contestants"])
    return experiments.load([experiments.own()], found)


def measurement(contestant: str = "a", round_: int = 0, **changes: Any) -> dict[str, Any]:
    """One good measurement: 10 000 requests/s for a second, a busy server, an idle machine.

    ``rate`` is what was answered, ``asked`` what an open pace offered; any other change goes to
    the record's key of that name, or to that of its load (whose ``connections`` are ``opened``
    here), usage or net.
    """
    rate = changes.pop("rate", 10_000.0)
    asked = changes.pop("asked", None)
    connections = changes.get("connections", 100)
    load = {
        "elapsed_s": 1.0,
        "completed": int(rate * changes.get("elapsed_s", 1.0)),
        "requests_per_s": rate,
        "errors": no_errors(),
        "latency_us": {"mean": connections / rate * 1e6},
        "latency_histogram": latencies(),
        "cpu_us_per_request": 5.0,
        "schedule_lag_us": None,
        "sent": int(rate * changes.get("elapsed_s", 1.0)),
        "unsent": 0,
        "unanswered": 0,
        "options": {"pace": "closed"},
        "connects_over_1s": 0,
        "connections_lost": 0,
        "connect_failures": {"no_local_port": 0, "no_descriptor": 0},
        "opened": {"asked": connections, "open_max": connections, "idle": 0},
    }
    usage = {
        "elapsed_s": changes.get("elapsed_s", 1.0),
        "server_cpu_s": 0.98,
        "server_share": 0.98,
        "generator_share": 0.5,
        "server_cpus_idle_share": 0.01,
        "foreign_share": 0.01,
        "steal_share": 0.0,
        "throttled_s": 0.0,
    }
    record = {
        "kind": "measurement",
        "at": 0.0,
        "experiment": "trial",
        "series": "closed",
        "protocol": "closed",
        "case": "hello",
        "contestant": contestant,
        "round": round_,
        "workers": 1,
        "again": False,
        "run": 0,
        "discarded": False,
        "connections": connections,
        "pipeline": 1,
        "fault": None,
        "checked": ["before", "during", "after"],
        "body_bytes": 9,
        "rate": asked,
        "load": load,
        "usage": usage,
        "net": {"listen_overflows": 0, "listen_drops": 0},
        "memory": {"pss_kib": 2048, "pss_peak_kib": 4096, "processes": 1},
    }
    for name, value in changes.items():
        for place in (record, load, usage, record["net"]):
            if name in place:
                place[name] = value
                break
        else:
            raise KeyError(name)
    if "elapsed_s" in changes:
        load["elapsed_s"] = changes["elapsed_s"]
    load["connections"] = load.pop("opened")
    load["service_histogram"] = load["latency_histogram"]
    return record


@cache
def latencies() -> str:
    """Most a millisecond, a tenth of them twenty; encoded once, since a thousand measurements have it."""
    return encode_histogram([1_000_000] * 9_000 + [20_000_000] * 1_000)


def no_errors() -> dict[str, int]:
    kinds = ("connect", "timeout", "reset", "short", "status", "length", "content", "protocol")
    return dict.fromkeys(kinds, 0)


def errors(**counts: int) -> dict[str, int]:
    return no_errors() | counts


def rounds(contestant: str = "a", n_rounds: int = 3, **changes: Any) -> list[dict[str, Any]]:
    """One measurement from several restarts."""
    return [measurement(contestant, number, **changes) for number in range(n_rounds)]


def entry(name: str, language: str = "Python") -> dict[str, Any]:
    """A contestant's entry in run.json."""
    return {
        "name": name,
        "language": language,
        "label": name,
        "note": "n",
        "json": "j",
        "records": "struct",
        "rules": "production",
        "maintainer": "lab",
        "workloads": ["hello"],
        "version": "1",
        "fingerprint": "0",
    }


def run_of(names: list[str], *series: Series, baseline: str = "a", **more: Any) -> dict[str, Any]:
    """What run.json holds."""
    experiment = experiments.Experiment(
        "trial",
        "A trial",
        "Who is fast?",
        tuple(names),
        series or (CLOSED, PIPELINED),
        10.0,
        baseline,
    )
    place = plan.Placement((0,), (1,))
    part = plan.Part("trial", experiment.series, baseline, 3, 10.0, ())
    return {
        "schema": 2,
        "name": "trial",
        "started_at": 0.0,
        "plan": plan.Plan("trial", 1, (part,), {1: place}).as_record(),
        "experiments": [experiment.as_record()],
        "environment": {"cpu": "c", "cpus_online": 2, "hypervisor": True, "kernel": "k"},
        "load": "citius-load",
        "contestants": [entry(name) for name in names],
        **more,
    }


def results(records: list[dict[str, Any]], *series: Series, baseline: str = "a") -> Results:
    """A result folder's contents."""
    names = list(dict.fromkeys(one["contestant"] for one in records if "contestant" in one))
    return Results(run_of(names, *series, baseline=baseline), records)
