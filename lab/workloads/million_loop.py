"""The golden total of the loop, and targets with random seeds."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect, integer

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


@lru_cache(maxsize=256)
def million_loop(seed: int) -> int:
    """Return the total of the million steps that start at ``seed``."""
    total = seed
    for i in range(1_000_000):
        total += i * 3
        if total & 64:
            total -= i
    return total


def check(answer: Response, target: str) -> None:
    """Compare the total with that of the target's seed."""
    seed = int(target.partition("seed=")[2] or 1)
    expect(f"million-loop, seed {seed}", million_loop(seed), integer("million-loop", answer.body))


def probe(random: random.Random) -> str:
    """Return a target whose seed is random."""
    return f"/million-loop?seed={random.randrange(1, 1_000_000_000)}"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target with another seed: the loop is as long."""
    return probe(random)
