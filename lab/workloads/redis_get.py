"""One record of the contract, by its number, from Redis."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, WrongResponse, code_of, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

records = code_of("transfer-data")


def check(answer: Response, target: str) -> None:
    """Compare the object; spaces between its parts are the server's own."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        raise WrongResponse(f"redis-get: expected JSON, got {short(answer.body)}") from None
    number = int(target.rpartition("/")[2])
    expect(f"redis-get, {target}", records.records()[number], found)


def probe(random: random.Random) -> str:
    """Return a target with a random number."""
    return f"/cached/{random.randrange(records.RECORDS)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return requests for all records, in any order."""
    return [
        Mixed(f"/cached/{number}")
        for number in random.sample(range(records.RECORDS), records.RECORDS)
    ]
