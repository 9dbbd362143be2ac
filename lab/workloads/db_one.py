"""One row of ``world``, by its id."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def row(number: int) -> dict[str, int]:
    """Return the row of an id, as ``db.sql`` makes it."""
    return {"id": number, "randomNumber": (number * 7919 + 13) % 10000 + 1}


def check(answer: Response, target: str) -> None:
    """Compare the object; spaces between its parts are the server's own."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        raise WrongResponse(f"db-one: expected JSON, got {short(answer.body)}") from None
    expect(f"db-one, {target}", row(int(target.partition("=")[2])), found)


def probe(random: random.Random) -> str:
    """Return a target with a random id."""
    return f"/db?id={random.randrange(1, 10001)}"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target that other rows answer."""
    return probe(random)


def requests(random: random.Random) -> list[Mixed]:
    """Return requests for as many rows."""
    return [Mixed(f"/db?id={number}") for number in random.sample(range(1, 10001), 1024)]
