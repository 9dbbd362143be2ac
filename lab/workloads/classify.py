"""The golden counts of a classification, and targets with random paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import expect

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def classify(target: bytes) -> dict[str, int]:
    """Return how many bytes after ``/classify`` are close to each name, and how many there are."""
    path = target.removeprefix(b"/classify")
    counts = {
        name: sum(path.count(bytes([byte])) for byte in _near(name.encode())) for name in NAMES
    }
    return {**counts, "total": len(path)}


def check(answer: Response, target: str) -> None:
    """Compare all lines with those of the target's path."""
    counts = classify(target.encode())
    lines = "".join(f"{name}:\t{count}\n" for name, count in counts.items())
    expect(f"classify, path of {counts['total']} bytes", lines.encode(), answer.body)


def probe(random: random.Random) -> str:
    """Return a target whose path is random."""
    letters = "abcdefghijklmnopqrstuvwxyz0123456789.-"
    return "/classify/" + "".join(random.choices(letters, k=random.randrange(0, 120)))


def equal_work(target: str, random: random.Random) -> str:
    """Return a target with the same bytes in another order; as they are where there is no other."""
    letters = list(target.removeprefix(PREFIX))
    random.shuffle(letters)
    return PREFIX + "".join(letters)


def _near(name: bytes) -> set[int]:
    return {byte + step for byte in name for step in (-1, 0, 1)}


PREFIX = "/classify/"
NAMES = ("navytux.spb.ru", "www.nexedi.com", "lab.nexedi.com", "www.erp5.com")
