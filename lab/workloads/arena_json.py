"""HttpArena's JSON profile: golden items, made as ``contestants/shared/arena/make.py`` makes its file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def item(number: int) -> dict[str, Any]:
    """Return an item of the data set, by its place from 1."""
    return {
        "id": number,
        "name": f"{NAMES[number % 5]} {number}",
        "category": CATEGORIES[number % 8],
        "price": number * 79 % 500 + 1,
        "quantity": number * 31 % 100 + 1,
        "active": number % 3 != 0,
        "tags": [TAGS[number % 8], TAGS[(number * 3 + 1) % 8]],
        "rating": {"score": number * 7 % 50 + 1, "count": number * 13 % 500 + 1},
    }


def listing(count: int, factor: int) -> dict[str, Any]:
    """Return the object that a target asks for."""
    items = [item(number) for number in range(1, count + 1)]
    for one in items:
        one["total"] = one["price"] * one["quantity"] * factor
    return {"items": items, "count": count}


def check_content(content: bytes, target: str) -> None:
    """Compare the object; the order of members and spaces are the server's own."""
    path, _, factor = target.partition("?m=")
    golden = listing(int(path.removeprefix("/json/")), int(factor))
    try:
        found = json.loads(content)
    except ValueError:
        raise WrongResponse(f"arena-json: expected JSON, got {short(content)}") from None
    expect(f"arena-json, {target}", golden, found)


def check(answer: Response, target: str) -> None:
    """Compare a response that is not compressed."""
    check_content(answer.body, target)


def probe(random: random.Random) -> str:
    """Return a target with a random length and factor."""
    return f"/json/{random.randrange(1, 51)}?m={random.randrange(1, 10_000)}"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target of the same length with another factor."""
    return f"{target.partition('?')[0]}?m={random.randrange(1, 10_000)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return HttpArena's seven pairs."""
    return [Mixed(f"/json/{count}?m={factor}") for count, factor in PAIRS]


NAMES = ("Alpha Widget", "Pro Valve", "Core Relay", "Edge Link", "Micro Pump")
CATEGORIES = ("electronics", "tools", "books", "clothing", "office", "garden", "toys", "sports")
TAGS = ("sale", "heavy-duty", "popular", "fast", "new", "wireless", "eco", "limited")
PAIRS = ((1, 3), (5, 7), (10, 2), (15, 5), (25, 4), (40, 8), (50, 6))
