"""Records of every experiment with all contestants in it, made of text: the largest page there is."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from synthetic import entry, measurement, own_experiments, run_of

from citius_lab.measure import plan
from citius_lab.record import Results

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.definitions.experiments import Experiment
    from citius_lab.definitions.protocols import Series


def shown() -> list[Experiment]:
    """The experiments of that run: `quick`, and those that `all` has."""
    return [one for one in own_experiments().values() if one.in_all or one.name == "quick"]


def everything(n_rounds: int = 3) -> Results:
    """Return a run of all experiments: one contestant failed, one is missing, one is slow."""
    chance = random.Random(1)
    asked = shown()
    names = list(dict.fromkeys(name for one in asked for name in one.contestants))
    one, two = plan.Placement((0,), (1,)), plan.Placement((0, 1), (0, 1))
    run = run_of(names)
    run |= {
        "name": "all",
        "experiments": [experiment.as_record() for experiment in asked],
        "contestants": [entry(name, _language(name)) for name in names],
        "plan": plan.Plan("all", 1, (), {1: one, 2: two}).as_record(),
    }
    for contestant in run["contestants"]:
        contestant["rules"] = "floor" if contestant["name"] == "rust-floor" else "production"
    records: list[dict[str, Any]] = [_start(name, workers) for name in names for workers in (1, 2)]
    for experiment in asked:
        for round_ in range(n_rounds):
            records += _round(experiment, round_, chance)
            first = experiment.series[0]
            own = (experiment.baseline, first.cases[0], round_, chance)
            records.append(_measurement(experiment, first, *own) | {"again": True})
    records += [
        {"kind": "left out", "contestant": "mrhttp", "reason": "needs Python 3.12"},
        {"kind": "fault", "experiment": "rest", "contestant": "node-http", "again": False,
         "round": 0, "workers": 1, "cells": [["wrk", "hello"]], "message": DEATH},
        {"kind": "end", "at": 0.0, "interrupted": False},
    ]  # fmt: skip
    return Results(run, records)


def _round(experiment: Experiment, round_: int, chance: random.Random) -> Iterable[dict[str, Any]]:
    for series in experiment.series:
        for name in experiment.contestants:
            for case in series.cases:
                yield _measurement(experiment, series, name, case, round_, chance)


def _measurement(
    experiment: Experiment,
    series: Series,
    name: str,
    case: str,
    round_: int,
    chance: random.Random,
) -> dict[str, Any]:
    load = series.load
    speed = 1000.0 * (2 + sum(map(ord, name)) % 97) * (0.05 if case == "million-loop" else 1)
    rate = speed * load.pipeline**0.5 * chance.uniform(0.97, 1.03)
    changes: dict[str, Any] = {}
    if load.pace != "closed":
        due = load.rate or (load.fraction or 0.0) * speed or 3000.0
        rate = due * chance.uniform(0.995, 1.0)
        changes = {"options": {"pace": load.pace}, "server_share": 0.5}
        changes |= {"server_cpus_idle_share": 0.5}
        if load.pace != "users":
            changes |= {"asked": due, "schedule_lag_us": {"p99": 60.0}}
    if name == "go-fasthttp" and case == "encode-json":
        changes["errors"] = {"connect": 0, "content": 3}
    record = measurement(
        name, round_, rate=rate, experiment=experiment.name, series=series.id, case=case,
        pipeline=load.pipeline, connections=load.connections or 64, workers=series.workers or 2,
        **changes,
    )  # fmt: skip
    command = ["citius-load", "--connections", "64", "http://127.0.0.1:8000/" + "a" * 110]
    return record | {"command": command}


def _start(name: str, workers: int) -> dict[str, Any]:
    return {
        "kind": "start",
        "contestant": name,
        "workers": workers,
        "again": False,
        "command": [f"/opt/{name}/bin/serve", "--port", "8000", "--workers", str(workers)],
        "ready_after_s": 0.2,
        "conduct_faults": {"split_head": "no answer to a head in pieces"}
        if name == "robyn"
        else {},
        "pss_idle_kib": 20_000 * workers,
        "processes": workers,
    }


def _language(name: str) -> str:
    for start, language in (
        ("go", "Go"),
        ("rust", "Rust"),
        ("node", "JavaScript"),
        ("pypy", "PyPy"),
    ):
        if name.startswith(start):
            return language
    return "Python"


DEATH = "it died; its log ends:\n    Traceback\n    no licence\n(it was starting)"
