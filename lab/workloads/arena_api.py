"""HttpArena's mix of three of its profiles; each response is checked as that profile checks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, code_of

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

baseline, items, rows = (code_of(f"arena-{name}") for name in ("baseline", "json", "async-db"))


def check(answer: Response, target: str) -> None:
    """Check a response as the profile of its target does."""
    if target.startswith("/baseline11"):
        baseline.check(answer, target)
    elif target.startswith("/json/"):
        items.check(answer, target)
    else:
        rows.check(answer, target)


def probe(random: random.Random) -> str:
    """Return a target of the profile that asks the database."""
    return rows.probe(random)


def equal_work(target: str, random: random.Random) -> str:
    """Return a target that other rows answer."""
    return probe(random)


def requests(random: random.Random) -> list[Mixed]:
    """Return requests in HttpArena's order: eight templates, with random numbers."""
    templates = (*[baseline.probe] * 3, *[items.probe] * 3, *[rows.probe] * 2)
    return [Mixed(template(random)) for _ in range(64) for template in templates]
