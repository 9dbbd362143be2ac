from __future__ import annotations

from typing import Any

from synthetic import measurement, rounds

from citius_lab.definitions.protocols import Load, Series
from citius_lab.measure.history import History
from citius_lab.measure.plan import Block, Cell, Part, Placement, Plan

CLOSED = Series("closed", "closed", "t", Load(connections=100), ("hello",))
HALF = Series("half", "open", "t", Load(pace="constant", fraction=0.5, of="closed"), ("hello",))
REST = Series("rest", "wrk", "t", Load(connections=64), ("hello",), only_if_failed="closed")
PART = Part("trial", (CLOSED, HALF, REST), "a", 8, 60.0, tuple(
    Block(number, name, 1, (Cell("closed", "hello"),)) for number in range(8) for name in "ab"
))  # fmt: skip
PLAN = Plan("trial", 1, (PART,), {1: Placement((0,), (1,))})


def wants(history: History, name: str, number: int, series: str = "closed") -> bool:
    block = Block(number, name, 1, (Cell(series, "hello"),))
    return history.wants(PART, block, block.cells[0])


def history(*records: dict[str, Any]) -> History:
    return History(PLAN, records)


def test_what_is_recorded_is_not_wanted_again() -> None:
    found = history(measurement("a", 0))
    assert not wants(found, "a", 0)
    assert wants(found, "a", 1)
    assert wants(found, "b", 0)


def test_narrow_intervals_need_no_more_restarts_but_the_baseline_waits_for_the_others() -> None:
    wide = [measurement("b", number, rate=rate) for number, rate in enumerate((5e3, 1e4, 2e4))]
    found = history(*rounds("a"), *wide)
    assert wants(found, "b", 3)
    assert wants(found, "a", 3)
    both = history(*rounds("a"), *rounds("b"))
    assert not wants(both, "a", 3)
    assert not wants(both, "b", 3)


def test_three_rounds_are_run_however_narrow_they_are() -> None:
    assert wants(history(*rounds("a", 2), *rounds("b", 2)), "b", 2)


def test_who_fails_in_three_rounds_is_not_asked_again() -> None:
    broken = [measurement("b", number, fault="wrong answer") for number in range(3)]
    assert not wants(history(*rounds("a"), *broken), "b", 3)


def test_a_series_for_failures_waits_for_one() -> None:
    assert not wants(history(measurement("a", 0)), "a", 0, "rest")
    assert wants(history(measurement("b", 0, fault="reset")), "a", 0, "rest")


def test_a_fraction_is_of_what_the_same_process_did() -> None:
    found = history(measurement("a", 0, rate=8e3), measurement("a", 1, rate=9e3))
    block = Block(1, "a", 1, (Cell("half", "hello"),))
    assert found.capacity(PART, block, block.cells[0], HALF) == 9e3
    later = Block(2, "a", 1, (Cell("half", "hello"),))
    assert found.capacity(PART, later, later.cells[0], HALF) is None


def test_time_between_records_is_spent_and_time_between_runs_is_not() -> None:
    records = [measurement("a", number, at=float(at)) for number, at in enumerate((10, 12, 15))]
    records.append({"kind": "end", "at": 16.0, "interrupted": True})
    records.append(measurement("a", 3, at=1000.0))
    records.append(measurement("a", 4, at=1002.0))
    assert history(*records).spent_s("trial") == 7.0
