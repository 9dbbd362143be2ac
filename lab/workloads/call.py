"""A profile from the service that the lab runs beside contestants (``processes.services``)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

PROFILES = 1000


def golden(number: int) -> dict[str, object]:
    """Return the object that the service has."""
    return {
        "id": number,
        "name": f"Name {number}",
        "email": f"name.{number}@services.example",
        "street": f"{number} Long Street",
        "city": "Springfield",
        "is_active": True,
        "score": number + 0.5,
    }


def check(answer: Response, target: str) -> None:
    """Compare the object; spaces between its parts are the server's own."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        raise WrongResponse(f"call: expected JSON, got {short(answer.body)}") from None
    expect(f"call, {target}", golden(int(target.rpartition("/")[2])), found)


def probe(random: random.Random, path: str = "call") -> str:
    """Return a target with a random number."""
    return f"/{path}/{random.randrange(PROFILES)}"


def requests(random: random.Random, path: str = "call") -> list[Mixed]:
    """Return requests for all profiles, in any order."""
    return [Mixed(f"/{path}/{number}") for number in random.sample(range(PROFILES), PROFILES)]
