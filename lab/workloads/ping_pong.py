"""The sum of what comes back: every number once, whatever carried it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Response, expect, integer

if TYPE_CHECKING:
    import random


def check(response: Response, target: str) -> None:
    """Check a response.

    Raises:
        WrongResponse: A value was lost, or came twice.
    """
    trips = int(target.partition("trips=")[2])
    expect("ping-pong", trips * (trips - 1) // 2, integer("ping-pong", response.body))


def probe(random: random.Random) -> str:
    """Return a target with another number of trips; of greenlets, which every contestant has."""
    return f"/ping-pong/greenlets?trips={random.randrange(1, 100)}"
