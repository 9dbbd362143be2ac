from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from synthetic import SECTION, errors, measurement, results, rounds

from citius_lab.errors import LabError
from citius_lab.judge import analyse
from citius_lab.judge.thresholds import Condition

if TYPE_CHECKING:
    from citius_lab.judge.figures import Figure


def figures(*rates: float, **changes: object) -> list[Figure]:
    records = [
        measurement(name, number, rate=rate * (1 + number / 200), **changes)
        for name, rate in zip("abc", rates, strict=False)
        for number in range(3)
    ]
    analysis = analyse.analyse(results(records))
    return [analysis.figures[SECTION, "hello", name] for name in analysis.contestants]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("ratio<0.95", True),  # a is half of b
        ("ratio<0.4", False),
        ("ratio>0.4", True),
        ("cpu-ratio>1.5", True),  # and a request costs it twice as much
        ("rps<10000", True),
        ("rps < 1000", False),
        ("p99>10ms", True),
        ("p99>0.01s", True),
        ("p99>30000us", False),
        ("errors>0.1%", False),
        ("p99.9>1ms", True),  # too few values for it: a gate does not open for that
    ],
)
def test_a_condition_is_about_the_first(text: str, holds: bool) -> None:
    subject, *others = figures(5000.0, 10_000.0)
    assert bool(Condition.parse(text).held_by(subject, others)) is holds


def test_a_difference_within_the_interval_does_not_fail_a_build() -> None:
    records = [measurement("a", i, rate=rate) for i, rate in enumerate((9e3, 9.5e3, 1.01e4))]
    records += rounds("b")
    analysis = analyse.analyse(results(records))
    pair = [analysis.figures[SECTION, "hello", name] for name in "ab"]
    assert pair[1].ratio is not None
    assert pair[1].ratio.inverse().value < 0.96
    assert Condition.parse("ratio<0.96").held_by(pair[0], pair[1:]) == []


def test_every_condition_holds_for_who_failed() -> None:
    (subject,) = figures(10_000.0, errors=errors(content=1))
    (line,) = Condition.parse("p99>1000s").held_by(subject, [])
    assert "a failed: wrong answers under load" in line


@pytest.mark.parametrize("text", ["p99", "speed>1", "p99>20", "ratio<1ms", "p99=20ms", "errors>1x"])
def test_says_what_is_no_condition(text: str) -> None:
    with pytest.raises(LabError):
        Condition.parse(text)
