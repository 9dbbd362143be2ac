"""Twenty of the items whose price lies in a range, each with an object of two of its columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def item(number: int) -> dict[str, Any]:
    """Return the item of an id, as ``db.sql`` makes it."""
    return {
        "id": number,
        "name": f"Product number {number}",
        "category": ("electronics", "garden", "books", "toys")[number % 4],
        "price": number % 1000,
        "quantity": number % 37,
        "active": number % 3 != 0,
        "tags": [f"tag {number % 7}", f"shelf {number % 90}"],
        "rating": {"score": number % 50, "count": number % 400},
    }


def check(answer: Response, target: str) -> None:
    """Compare each item with the one of its id; which of those in the range come is the server's choice."""
    query = parse_qs(urlsplit(target).query)
    low, high, limit = (int(query[name][0]) for name in ("min", "max", "limit"))
    try:
        found = json.loads(answer.body)
        ids = [one["id"] for one in found["items"]]
    except (ValueError, KeyError, TypeError):
        raise WrongResponse(f"db-rows: expected items, got {short(answer.body)}") from None
    expect(f"db-rows, {target}", {"items": [item(id) for id in ids], "count": limit}, found)
    expect(f"db-rows, {target}, different items", limit, len(set(ids)))
    for one in found["items"]:
        if not low <= one["price"] <= high:
            raise WrongResponse(f"db-rows, {target}: the price {one['price']} is out of the range")


def probe(random: random.Random) -> str:
    """Return a target with a random range that has more than the limit."""
    low = random.randrange(1, 980)
    return f"/async-db?min={low}&max={low + random.randrange(1, 20)}&limit=20"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target that other rows answer."""
    return probe(random)


def requests(random: random.Random) -> list[Mixed]:
    """Return requests for ranges of which few are alike."""
    return [Mixed(probe(random)) for _ in range(512)]
