"""Every limit says where it comes from, what happens beyond it, and which test goes there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from citius._core import LIMITS

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "crates/citius-http/src/limits.rs").read_text()
CLIENT = (ROOT / "crates/citius-h1/src/client/limits.rs").read_text()
CLIENT_H2 = (ROOT / "crates/citius-h2/src/client/limits.rs").read_text()


def documented(source: str) -> dict[str, str]:
    return {
        name: " ".join(line.strip().removeprefix("///").strip() for line in doc.splitlines())
        for doc, name in re.findall(r"((?:^///[^\n]*\n)+)pub const (\w+):", source, re.M)
    }


DOCUMENTED = documented(SOURCE)
OF_CLIENT = documented(CLIENT)
OF_CLIENT_H2 = documented(CLIENT_H2)


def test_the_constants_are_what_python_sees() -> None:
    assert {name.lower() for name in DOCUMENTED} == set(LIMITS)
    assert set(re.findall(r"^pub const (\w+):", SOURCE, re.M)) == set(DOCUMENTED)


def test_limits_of_the_client_are_documented() -> None:
    assert set(re.findall(r"^pub const (\w+):", CLIENT, re.M)) == set(OF_CLIENT)
    assert set(re.findall(r"^pub const (\w+):", CLIENT_H2, re.M)) == set(OF_CLIENT_H2)


def faults(doc: str) -> Iterator[str]:
    """What the documentation of a limit lacks."""
    if "Origin:" not in doc:
        yield "says no origin"
    if not re.search(r"(Exceeded|Reached|Fallen)\b[^.]*:", doc):
        yield "says no consequence"
    places = re.findall(r"(Vector|Test): `([^`]+)`", doc)
    if not places:
        yield "names no vector and no test"
    for kind, place in places:
        path = ROOT / ("vectors" if kind == "Vector" else "") / place
        if not path.is_file():
            yield f"{place} does not exist"


@pytest.mark.parametrize(
    "limits", [DOCUMENTED, OF_CLIENT, OF_CLIENT_H2], ids=["server", "client", "client-h2"]
)
def test_documented_and_tested(limits: dict[str, str]) -> None:
    found = {name: [*faults(doc)] for name, doc in limits.items()}
    assert {name: lacks for name, lacks in found.items() if lacks} == {}
