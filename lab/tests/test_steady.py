from __future__ import annotations

import numpy as np
import pytest

from citius_lab.measure import steady


def noisy(*levels: tuple[int, float], seed: int = 1) -> list[int]:
    chance = np.random.default_rng(seed)
    return [int(chance.poisson(level)) for n_steps, level in levels for _ in range(n_steps)]


def test_a_level_series_is_steady_at_once() -> None:
    found = steady.find([1000, 1010, 990, 1005, 995, 1000], 0.1)
    assert (found.steady_after_s, found.text()) == (0.0, "at once")
    assert found.gain == pytest.approx(1.0, abs=0.02)


def test_a_jit_that_warms_up_is_steady_after_it() -> None:
    found = steady.find([100, 120, 200, 400, 700, 980, 1000, 1005, 995, 1002, 998, 1000], 0.1)
    assert found.steady_after_s == pytest.approx(0.5)
    assert found.text() == "after 0.5 s"
    assert found.gain == pytest.approx(10, rel=0.05)


@pytest.mark.parametrize(
    "counts",
    [
        [100 * 2**step for step in range(10)],
        [1000 - 90 * step for step in range(10)],
        [0] * 10,
    ],
)
def test_a_series_that_still_moves_is_never_steady(counts: list[int]) -> None:
    found = steady.find(counts, 0.1)
    assert found.steady_after_s is None
    assert found.text() == "never within 1.0 s"


def test_too_few_steps_decide_nothing() -> None:
    assert not steady.find([10, 10, 10], 0.1).is_decided


@pytest.mark.parametrize("mean", [20, 200, 5000])
def test_counting_noise_is_no_warm_up(mean: int) -> None:
    found = [steady.find(noisy((12, mean), seed=seed), 0.1) for seed in range(200)]
    late = sum(one.steady_after_s is None or one.steady_after_s > 0.5 for one in found)
    assert late <= 4


def test_a_step_is_found_whatever_the_noise() -> None:
    for seed in range(50):
        found = steady.find(noisy((6, 100), (12, 1000), seed=seed), 0.1)
        assert found.steady_after_s is not None
        assert 0.6 <= found.steady_after_s <= 1.3
