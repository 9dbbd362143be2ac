"""Five rows of ``changing``, each with another number than before, as the table has them afterwards.

The table is a copy of ``world`` that this workload alone writes: the rows of ``world`` are the golden
responses of others. What the table says is asked of the database itself, not of the contestant.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import WrongResponse, expect, short
from citius_lab.processes import services

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response

NUMBERS = range(1, 10_001)


def check(answer: Response, target: str) -> None:
    """Compare the rows with the table; nothing else writes it meanwhile."""
    count = int(target.partition("=")[2])
    try:
        found = {one["id"]: one["randomNumber"] for one in json.loads(answer.body)}
    except (ValueError, KeyError, TypeError):
        raise WrongResponse(f"db-updates: expected rows, got {short(answer.body)}") from None
    expect("db-updates, rows", count, len(found))
    if not (set(found) <= set(NUMBERS) and set(found.values()) <= set(NUMBERS)):
        raise WrongResponse(
            f"db-updates: ids and numbers from 1 to 10000, got {short(answer.body)}"
        )
    ids = ",".join(str(int(id)) for id in sorted(found))
    rows = services.query(f"SELECT id, randomnumber FROM changing WHERE id IN ({ids}) ORDER BY id")
    expect("db-updates, the table afterwards", [[id, found[id]] for id in sorted(found)], rows)
    whole = services.query(
        "SELECT count(*), count(*) FILTER (WHERE randomnumber NOT BETWEEN 1 AND 10000) FROM changing"
    )
    expect("db-updates, the whole table", [[10_000, 0]], whole)


def probe(random: object) -> str:
    """Return the target: the server draws."""
    return "/updates?n=5"
