"""Twenty rows of ``world``, whichever the server draws."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import WrongResponse, expect, short

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response


def check(answer: Response, target: str) -> None:
    """Compare each row; draws of the same id are rare, so that nearly all differ."""
    count = int(target.partition("=")[2])
    try:
        found = json.loads(answer.body)
        ids = [one["id"] for one in found]
    except (ValueError, KeyError, TypeError):
        raise WrongResponse(f"db-queries: expected rows, got {short(answer.body)}") from None
    golden = [{"id": id, "randomNumber": (id * 7919 + 13) % 10000 + 1} for id in ids]
    expect("db-queries", golden, found)
    expect("db-queries, rows", count, len(found))
    if len(set(ids)) < count - 3 or not set(ids) <= set(range(1, 10001)):
        raise WrongResponse(f"db-queries: the ids were not drawn from 1 to 10000: {short(ids)}")


def probe(random: object) -> str:
    """Return the target: the server draws."""
    return "/queries?n=20"
