"""The answer to the Fibonacci numbers: the article's constant, or a sum that takes the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, expect

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def fibonacci(first: int) -> list[int]:
    """Return the numbers up to the limit of the sequence that begins with ``first``, 1."""
    numbers = [first, 1]
    while numbers[-1] <= LIMIT:
        numbers.append(numbers[-2] + numbers[-1])
    return numbers[:-1]


def check(answer: Response, target: str) -> None:
    """Compare the answer with ``OK``, or with the sum of the sequence that the target asks for."""
    first = target.partition("first=")[2]
    golden = str(sum(fibonacci(int(first)))) if first else "OK"
    expect(f"fibonacci, {target}" if first else "fibonacci", golden.encode(), answer.body)


def probe(random: random.Random) -> str:
    """Return a target whose sequence begins with a random number."""
    return f"/fibonacci?first={random.randrange(2, FIRST_MAX)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return requests of which each asks for another sequence."""
    return [
        Mixed(f"/fibonacci?first={first}") for first in random.sample(range(2, FIRST_MAX), REQUESTS)
    ]


LIMIT = 100_000_000
# Sequences that begin higher are shorter.
FIRST_MAX = 2000
REQUESTS = 1024
