"""The tables of docs/guides/scaling.md are what lab/costs/capacity.py computes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def capacity() -> ModuleType:
    path = Path(__file__).parents[2] / "lab/costs/capacity.py"
    spec = importlib.util.spec_from_file_location("capacity", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)

    sys.modules["capacity"] = module
    spec.loader.exec_module(module)
    return module


def test_the_guide_has_what_the_script_computes(capacity: ModuleType) -> None:
    text = capacity.GUIDE.read_text()
    assert capacity.guide_with(text) == text, "lab/costs/capacity.py --write"


def test_one_redis_ends_before_many_nodes_and_four_do_not(capacity: ModuleType) -> None:
    # What a Redis spends of a message is the limit, however many nodes there are.
    alone = capacity.simulate(800, 1, members=2)
    assert alone.busiest == "Redis"
    assert alone.per_s == pytest.approx(1e6 / capacity.MESSAGE_REDIS_US)
    four = capacity.simulate(800, 4, members=2)
    assert 3 * alone.per_s < four.per_s < 4 * alone.per_s


def test_deliveries_of_large_rooms_are_the_nodes(capacity: ModuleType) -> None:
    one, ten = capacity.simulate(8, 1, members=1000), capacity.simulate(80, 1, members=1000)
    assert one.busiest == ten.busiest == "node"
    # Never more than all cores together; less, because rooms are not spread evenly.
    message_us = 2 * capacity.MESSAGE_NODE_US + 1000 * capacity.DELIVERY_US
    assert 0.7 < one.per_s / (8e6 / message_us) <= 1
    assert 0.5 < ten.per_s / (80e6 / message_us) <= 1
