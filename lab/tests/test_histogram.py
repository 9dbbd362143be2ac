from __future__ import annotations

import random

import pytest
from fake_load import encode_histogram

from citius_lab.judge.histogram import Histogram

# What citius-load 0.1.0 wrote for three latencies: 1 µs, 1 ms and 1 s.
VALUES = (1_000, 1_000_000, 1_000_000_000)


def test_decodes_what_was_encoded_to_three_digits() -> None:
    decoded = Histogram.decode(encode_histogram(VALUES))
    assert decoded.total == 3
    for value, found in zip(VALUES, sorted(decoded.counts), strict=True):
        assert value <= found <= value * 1.001


def test_percentiles_are_those_of_the_sorted_values() -> None:
    chance = random.Random(1)
    values = sorted(int(chance.lognormvariate(12, 1)) for _ in range(5000))
    decoded = Histogram.decode(encode_histogram(values))
    for percent in (1, 50, 90, 99, 100):
        exact = values[max(0, -(-len(values) * percent // 100) - 1)]
        found = decoded.percentile(percent)
        assert found is not None
        assert exact <= found <= exact * 1.001 + 1


def test_merging_is_recording_together() -> None:
    merged = Histogram.decode(encode_histogram(VALUES[:2]))
    merged.merge(Histogram.decode(encode_histogram(VALUES[1:])))
    assert merged.counts == Histogram.decode(encode_histogram([*VALUES[:2], *VALUES[1:]])).counts


def test_nothing_has_no_percentile() -> None:
    assert Histogram.decode(encode_histogram([])).percentile(50) is None


@pytest.mark.parametrize("text", ["", "AAAA", "not base64!", "SElTVA=="])
def test_refuses_what_is_not_a_histogram(text: str) -> None:
    with pytest.raises(ValueError, match="V2 HdrHistogram"):
        Histogram.decode(text)
