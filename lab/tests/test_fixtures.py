"""Every known-bad run gets its verdict, and every good one is left alone.

A fixture is a JSON file: a story, the series it belongs to, and groups of measurements that differ
from one good measurement (``synthetic.measurement``) by what is said of them. Latencies are given
as pairs of milliseconds and counts. What is expected of a contestant is the verdict on its rate, and
under ``cost`` that on its CPU time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_load import encode_histogram
from synthetic import measurement, results

from citius_lab.definitions.protocols import Load, Series
from citius_lab.judge import analyse
from citius_lab.judge.figures import VALID, Analysis

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.json"))


def read(path: Path) -> dict[str, Any]:
    fixture: dict[str, Any] = json.loads(path.read_text())
    return fixture


def analysed(fixture: dict[str, Any]) -> Analysis:
    series = Series(
        "trial", fixture["protocol"], "trial", Load(**fixture["load"]), ("hello", "async")
    )
    records: list[dict[str, Any]] = []
    for group in fixture["groups"]:
        common = group.get("common", {})
        for number, own in enumerate(group["rounds"]):
            records.append(record(group["contestant"], number, {**common, **own}))
    return analyse.analyse(results(records, series))


def record(contestant: str, number: int, said: dict[str, Any]) -> dict[str, Any]:
    said = dict(said)
    pairs = said.pop("latency_ms", None)
    made = measurement(contestant, number, series="trial", **said)
    if pairs is not None:
        values = [round(ms * 1e6) for ms, count in pairs for _ in range(count)]
        made["load"]["latency_histogram"] = encode_histogram(values)
        made["load"]["latency_us"] = {"mean": sum(values) / len(values) / 1e3}
    return made


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_fixture_gets_its_verdict(path: Path) -> None:
    fixture = read(path)
    analysis = analysed(fixture)
    for contestant, expected in fixture["expect"].items():
        (figure,) = [one for one in analysis.figures.values() if one.contestant == contestant]
        for found, said in ((figure.verdict, expected), (figure.cost_verdict, expected["cost"])):
            kinds = [reason.kind for reason in found.reasons]
            assert (found.word, sorted(kinds)) == (said["word"], sorted(said["why"]))
        if "limiter" in expected:
            assert figure.limiter == expected["limiter"]


def test_there_are_good_runs_among_them() -> None:
    words = [one["word"] for path in FIXTURES for one in read(path)["expect"].values()]
    assert words.count(VALID) >= 4
