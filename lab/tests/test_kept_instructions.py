"""The gate on instructions: which counts are no longer those that were kept."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

COSTS = Path(__file__).parents[1] / "costs"


@pytest.fixture(scope="module")
def instructions():
    sys.path.insert(0, str(COSTS))
    try:
        yield importlib.import_module("instructions")
    finally:
        sys.path.remove(str(COSTS))


def test_counts_beyond_the_margin_are_named(instructions) -> None:
    kept = {"python": "3.11.7 here", "kinds": {"native": {"total": 1000, "extension": 500}}}

    def said(total: float, extension: float, python: str = "3.11.7 here") -> list[str]:
        cost = instructions.Cost(total, extension)
        return instructions.differences({"native": cost}, kept, python)

    assert said(1029, 491) == []
    assert said(1031, 500) == ["native, total: 1,031, kept 1,000 (+3.1%)"]
    assert said(1000, 489) == ["native, extension: 489, kept 500 (-2.2%)"]
    # Another build of the same version executes other instructions of its own, and the same of ours.
    assert said(1500, 500, "3.11.9 there") == []
    assert said(1000, 600, "3.11.9 there") == ["native, extension: 600, kept 500 (+20.0%)"]
    assert "run --keep" in said(1000, 500, "3.14.3 there")[0]


def test_every_kind_of_request_is_kept(instructions) -> None:
    kept = json.loads(instructions.KEPT.read_text())
    assert kept["kinds"].keys() == instructions.WORKLOADS.keys()
