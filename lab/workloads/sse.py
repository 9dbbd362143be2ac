"""Events that count, each with the same text behind its number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def check(response: Response, target: str) -> None:
    """Compare all events; a space after the colon is the server's own choice."""
    number = int(target.partition("n=")[2])
    golden = b"".join(b"data:%08d %s\n\n" % (one, TEXT) for one in range(number))
    expect(f"sse, {target}", golden, response.body.replace(b"data: ", b"data:"))


def probe(random: random.Random) -> str:
    """Return a target with another number of events."""
    return f"/sse?n={random.randrange(1, 300)}"


TEXT = b"The quick brown fox jumps over the lazy dog again"
