"""The profiles of `call`, over TLS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import code_of

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Mixed

plain = code_of("call")
check = plain.check


def probe(random: random.Random) -> str:
    """Return a target with a random number."""
    target: str = plain.probe(random, "call-tls")
    return target


def requests(random: random.Random) -> list[Mixed]:
    """Return requests for all profiles, in any order."""
    mixed: list[Mixed] = plain.requests(random, "call-tls")
    return mixed
