from __future__ import annotations

import math

import numpy as np
import pytest

from citius_lab.judge import statistics
from citius_lab.measure.history import SPREAD_TARGET
from citius_lab.measure.plan import ROUNDS_MAX, ROUNDS_MIN


def test_the_centre_is_the_geometric_mean() -> None:
    assert statistics.interval([100.0, 400.0]).value == pytest.approx(200.0)


def test_one_restart_has_no_interval() -> None:
    single = statistics.interval([7.0])
    assert (single.value, single.low, single.high, single.spread) == (
        pytest.approx(7.0),
        None,
        None,
        None,
    )


def test_equal_restarts_leave_no_doubt() -> None:
    same = statistics.interval([5.0, 5.0, 5.0])
    assert same.spread == pytest.approx(0.0, abs=1e-12)


def test_an_interval_scales_with_its_values() -> None:
    one, ten = statistics.interval([9.0, 10.0, 11.0]), statistics.interval([90.0, 100.0, 110.0])
    assert ten.low == pytest.approx(one.low * 10)
    assert ten.high == pytest.approx(one.high * 10)


@pytest.mark.parametrize("n_restarts", [3, 4, 6])
def test_intervals_cover_the_truth_about_as_often_as_they_say(n_restarts: int) -> None:
    chance = np.random.default_rng(n_restarts)
    hits, trials = 0, 2000
    for _ in range(trials):
        sample = np.exp(chance.normal(math.log(1000), 0.05, n_restarts))
        found = statistics.interval(list(sample))
        hits += found.low <= 1000 <= found.high
    # 95 % of the trials, within three standard errors.
    error = math.sqrt(trials * 0.95 * 0.05)
    assert abs(hits - 0.95 * trials) <= 3 * error


@pytest.mark.parametrize(("deviation", "covered"), [(0.01, 0.95), (0.02, 0.95), (0.05, 0.91)])
def test_what_ending_early_takes_from_the_coverage(deviation: float, covered: float) -> None:
    """A run stops when an interval is narrow, which is more often one that is narrow by chance."""
    chance = np.random.default_rng(5)
    hits, trials = 0, 1000
    for _ in range(trials):
        sample: list[float] = []
        while len(sample) < ROUNDS_MAX:
            sample.append(float(np.exp(chance.normal(0.0, deviation))))
            found = statistics.interval(sample)
            if len(sample) >= ROUNDS_MIN and found.spread <= SPREAD_TARGET:
                break
        hits += found.low <= 1 <= found.high
    error = math.sqrt(covered * (1 - covered) / trials)
    assert abs(hits / trials - covered) <= 3 * error


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.99, 1.01, "equal"),
        (0.97, 1.01, "unknown"),
        (0.5, 3.0, "unknown"),
        (1.03, 1.04, "different"),
        (0.9, 0.95, "different"),
        (None, None, "unknown"),
    ],
)
def test_a_ratio_tells_equal_from_unknown(low: float | None, high: float | None, word: str) -> None:
    ratio = statistics.Interval(1.0, low, high)
    assert statistics.relation(ratio, 0.02).value == word
    assert statistics.relation(None, 0.02) is statistics.Relation.UNKNOWN


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (4, 2.776), (12, 2.179), (30, 2.042)]
)
def test_students_t(freedom: int, quantile: float) -> None:
    assert statistics.t_975(freedom) == pytest.approx(quantile, abs=0.002)


def test_restarts_that_would_make_an_interval_narrow() -> None:
    """So many of the same spread do, one less does not."""
    values = [0.8, 1.0, 1.25]
    n_values = statistics.restarts_for(values, 0.1, 100)
    assert n_values is not None

    def spread(n: int) -> float:
        found = statistics.interval(alternating(n)).spread
        assert found is not None
        return found

    def alternating(n: int) -> list[float]:
        """Values whose logarithms have the deviation of ``values``, exactly."""
        logs = np.array([(-1.0) ** number for number in range(n)])
        own = np.log(values).std(ddof=1)
        return list(np.exp((logs - logs.mean()) / logs.std(ddof=1) * own))

    assert spread(n_values) <= 0.1 < spread(n_values - 1)
    assert statistics.restarts_for(values, 0.001, 100) is None
