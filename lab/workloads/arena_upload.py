"""HttpArena's uploads: golden counts of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, expect, integer

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def check(answer: Response, target: str) -> None:
    """Compare the count of the case's own content."""
    expect("arena-upload", len("a small one"), integer("arena-upload", answer.body))


def check_mixed(answer: Response, one: Mixed) -> None:
    """Compare the count of a request of the mix."""
    expect("arena-upload", len(one.body), integer("arena-upload", answer.body))


def requests(random: random.Random) -> list[Mixed]:
    """Return HttpArena's four sizes."""
    return [
        Mixed("/upload", body=random.randbytes(1024) * (n_kib), headers=BINARY)
        for n_kib in (500, 2 * 1024, 10 * 1024, 20 * 1024)
    ]


BINARY = (("Content-Type", "application/octet-stream"),)
