"""The gate on instructions: what a dump counts, and which counts are no longer those that were kept."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "instructions.py"


@pytest.fixture(scope="module")
def instructions():
    spec = importlib.util.spec_from_file_location("instructions", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["instructions"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["instructions"]


DUMP = """\
positions: line
events: Ir
ob=(1) /usr/lib/libpython3.11.so
fn=(1) call
3 100
cob=(2) /x/citius/_core.cpython-311-x86_64-linux-gnu.so
cfn=(2) turn
calls=1 8
3 5000
ob=(2)
fn=(2)
8 40
+2 30
cob=(1)
cfn=(1)
calls=2 3
* 900
* 5
ob=(1)
fn=(3) other
-4 7
totals: 6082
"""


def test_a_dump_counts_what_the_extension_itself_executed(instructions) -> None:
    assert instructions.within_extension(DUMP.splitlines()) == 40 + 30 + 5


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
