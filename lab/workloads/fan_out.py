"""The golden sum of what the goroutines send, and targets with random seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect, integer

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def check(answer: Response, target: str) -> None:
    """Compare the sum with that of the target's seed."""
    seed = int(target.partition("seed=")[2])
    golden = sum((seed + i) ** 2 for i in range(10))
    expect(f"fan-out, seed {seed}", golden, integer("fan-out", answer.body))


def probe(random: random.Random) -> str:
    """Return a target whose seed is random."""
    return f"/fan-out?seed={random.randrange(1, 1_000_000)}"


def equal_work(target: str, random: random.Random) -> str:
    """Return a target with another seed: there are as many goroutines."""
    return probe(random)
