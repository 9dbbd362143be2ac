"""HttpArena's query: golden items, as ``arena.sql`` makes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def item(number: int) -> dict[str, Any]:
    """Return the row of an id."""
    return {
        "id": number,
        "name": f"Item {number}",
        "category": CATEGORIES[number % 8],
        "price": number * 79 % 500 + 1,
        "quantity": number * 31 % 1000 + 1,
        "active": number % 2 == 0,
        "tags": [f"tag {number % 7}", f"shelf {number % 90}"],
        "rating": {"score": number * 7 % 50 + 1, "count": number * 13 % 500 + 1},
    }


def parsed(answer: Response) -> Any:
    """Return the content of a response."""
    try:
        return json.loads(answer.body)
    except ValueError:
        raise WrongResponse(f"arena: expected JSON, got {short(answer.body)}") from None


def check(answer: Response, target: str) -> None:
    """Compare each item with the one of its id; which of those in the range come is the server's choice."""
    query = parse_qs(urlsplit(target).query)
    low, high, limit = (int(query[name][0]) for name in ("min", "max", "limit"))
    found = parsed(answer)
    try:
        ids = [one["id"] for one in found["items"]]
    except (KeyError, TypeError):
        raise WrongResponse(f"arena-async-db: expected items, got {short(found)}") from None
    expect(f"arena-async-db, {target}", {"items": list(map(item, ids)), "count": limit}, found)
    expect(f"arena-async-db, {target}, different items", limit, len(set(ids)))
    for one in found["items"]:
        if not low <= one["price"] <= high:
            raise WrongResponse(f"arena-async-db: the price {one['price']} is out of the range")


def target_of(random: random.Random, limit: int) -> str:
    """Return a target with a random range that has more rows than the limit."""
    low = random.randrange(1, 450)
    return f"/async-db?min={low}&max={low + random.randrange(10, 50)}&limit={limit}"


def probe(random: random.Random) -> str:
    """Return a target with a random range."""
    return target_of(random, 20)


def equal_work(target: str, random: random.Random) -> str:
    """Return a target that other rows answer."""
    return probe(random)


def requests(random: random.Random) -> list[Mixed]:
    """Return requests of HttpArena's five limits."""
    return [Mixed(target_of(random, LIMITS[number % 5])) for number in range(500)]


CATEGORIES = ("electronics", "tools", "books", "clothing", "office", "garden", "toys", "sports")
LIMITS = (5, 10, 20, 35, 50)
