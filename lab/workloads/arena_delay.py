"""HttpArena's async: the milliseconds that were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect, integer

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def check(answer: Response, target: str) -> None:
    """Compare the response with the milliseconds of the path."""
    expect(
        f"arena-delay, {target}",
        int(target.rpartition("/")[2]),
        integer("arena-delay", answer.body),
    )


def probe(random: random.Random) -> str:
    """Return a target with another delay."""
    return f"/delay/{random.randrange(1, 30)}"
