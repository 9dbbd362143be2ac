"""The golden counts are those of ``classify``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import code_of

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

classify = code_of("classify")


def check(answer: Response, target: str) -> None:
    """Compare all lines with those of the target's path."""
    classify.check(answer, target.replace(PREFIX, classify.PREFIX, 1))


def probe(random: random.Random) -> str:
    """Return a target whose path is random."""
    return classify.probe(random).replace(classify.PREFIX, PREFIX, 1)


def equal_work(target: str, random: random.Random) -> str:
    """Return a target with the same bytes in another order; as they are where there is no other."""
    same = classify.equal_work(target.replace(PREFIX, classify.PREFIX, 1), random)
    return same.replace(classify.PREFIX, PREFIX, 1)


PREFIX = "/classify-channel/"
