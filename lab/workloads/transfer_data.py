"""The records of the contract, and whether a response is all of them as a JSON array."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from citius_lab.definitions.workloads import WrongResponse, expect, short

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response


@lru_cache(maxsize=1)
def records() -> list[dict[str, object]]:
    """Return the 1000 records."""
    return [
        {
            "id": i,
            "name": "My name",
            "description": "Some words on here so it looks full",
            "type": "U",
            "count": 33,
            "created_at": 1569882498.9117897 + i * 0.0000031,
        }
        for i in range(RECORDS)
    ]


def check(answer: Response, target: str) -> None:
    """Compare every record."""
    try:
        array = json.loads(answer.body)
    except ValueError as error:
        raise WrongResponse(f"transfer-data: not JSON: {error}") from None
    if not isinstance(array, list):
        raise WrongResponse(f"transfer-data: expected an array, got {short(array)}")
    array = cast("list[Any]", array)
    expect("transfer-data, records", RECORDS, len(array))
    for expected, got in zip(records(), array, strict=True):
        expect("transfer-data", expected, got)


RECORDS = 1000
