"""Every limit says where it comes from, what happens beyond it, and which test goes there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from citius._core import LIMITS

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "crates/citius-http/src/limits.rs").read_text()
DOCUMENTED = {
    name: " ".join(line.strip().removeprefix("///").strip() for line in doc.splitlines())
    for doc, name in re.findall(r"((?:^///[^\n]*\n)+)pub const (\w+):", SOURCE, re.M)
}


def test_the_constants_are_what_python_sees() -> None:
    assert {name.lower() for name in DOCUMENTED} == set(LIMITS)
    assert set(re.findall(r"^pub const (\w+):", SOURCE, re.M)) == set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_documented_and_tested(name: str) -> None:
    doc = DOCUMENTED[name]
    assert "Origin:" in doc
    assert re.search(r"(Exceeded|Reached|Fallen)\b[^.]*:", doc), "says no consequence"
    places = re.findall(r"(Vector|Test): `([^`]+)`", doc)
    assert places, "names no vector and no test"
    for kind, place in places:
        path = ROOT / ("vectors" if kind == "Vector" else "") / place
        assert path.is_file(), f"{place} does not exist"
