"""HttpArena's baseline: golden sums."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, expect, integer

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def parameters(target: str) -> int:
    """Return the sum of the parameters of a target."""
    query = parse_qs(urlsplit(target).query)
    return int(query["a"][0]) + int(query["b"][0])


def check(answer: Response, target: str) -> None:
    """Compare the sum of a request without content."""
    expect(f"arena-baseline, {target}", parameters(target), integer("arena-baseline", answer.body))


def check_mixed(answer: Response, one: Mixed) -> None:
    """Compare the sum of a request of the mix."""
    golden = parameters(one.target) + int(one.body or 0)
    expect(f"arena-baseline, {one.target}", golden, integer("arena-baseline", answer.body))


def probe(random: random.Random) -> str:
    """Return a target with random parameters."""
    return f"/baseline11?a={random.randrange(1000)}&b={random.randrange(1000)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return the three kinds of requests, a third of each, with random numbers."""
    found: list[Mixed] = []
    for number in range(768):
        target, body = probe(random), str(random.randrange(10, 100)).encode()
        if number % 3 == 0:
            found.append(Mixed(target))
        else:
            found.append(
                Mixed(target, method="POST", headers=TEXT, body=body, is_chunked=number % 3 == 2)
            )
    return found


TEXT = (("Content-Type", "text/plain"),)
