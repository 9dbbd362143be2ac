"""``db-rows`` by the language's usual ORM: the same items, at a path of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, code_of

if TYPE_CHECKING:
    import random

rows = code_of("db-rows")
check = rows.check


def probe(random: random.Random) -> str:
    """Return a target with a random range that has more than the limit."""
    return f"/orm{rows.probe(random).removeprefix('/async-db')}"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target that other rows answer."""
    return probe(random)


def requests(random: random.Random) -> list[Mixed]:
    """Return requests for ranges of which few are alike."""
    return [Mixed(probe(random)) for _ in range(512)]
