"""Events that count, one every 5 ms; their bytes are those of ``sse``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import WrongResponse, code_of

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

PAUSE_S = 0.005


def check(response: Response, target: str) -> None:
    """Compare all events, and the time they took."""
    code_of("sse").check(response, target)
    least_s = int(target.partition("n=")[2]) * PAUSE_S
    if response.elapsed_s < least_s:
        raise WrongResponse(
            f"sse-paced, {target}: expected the end after {least_s * 1e3:g} ms or more, "
            f"it came after {response.elapsed_s * 1e3:.2f} ms"
        )


def probe(random: random.Random) -> str:
    """Return a target with another number of events."""
    return f"/sse-paced?n={random.randrange(1, 40)}"
