"""HttpArena's baseline over HTTP/2: golden sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import code_of

if TYPE_CHECKING:
    import random

baseline = code_of("arena-baseline")
check = baseline.check


def probe(random: random.Random) -> str:
    """Return a target with random parameters."""
    return f"/baseline2?a={random.randrange(1000)}&b={random.randrange(1000)}"
