"""HttpArena's JSON profile with compression: what is compressed has to be, by gzip or brotli."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any

import brotli  # pyright: ignore[reportMissingTypeStubs]

from citius_lab.workloads import Mixed, WrongResponse, code_of, short

if TYPE_CHECKING:
    import random

    from citius_lab.workloads import Response

plain = code_of("arena-json")
br: Any = brotli  # which says nothing of its types


def decompressed(content: bytes) -> bytes:
    """Return what was compressed, by gzip or brotli.

    Raises:
        WrongResponse: It is neither.
    """
    try:
        found: bytes = gzip.decompress(content) if content[:2] == GZIP else br.decompress(content)
    except (br.error, OSError, EOFError, zlib.error):
        raise WrongResponse(f"expected gzip or brotli, got {short(content)}") from None
    return found


def check(answer: Response, target: str) -> None:
    """Compare what was compressed."""
    plain.check_content(decompressed(answer.body), target)


def probe(random: random.Random) -> str:
    """Return a target with a random length and factor; very short ones are not worth compressing."""
    return f"/json/{random.randrange(20, 51)}?m={random.randrange(1, 10_000)}"


equal_work = plain.equal_work


def requests(random: random.Random) -> list[Mixed]:
    """Return HttpArena's three pairs."""
    return [Mixed(f"/json/{count}?m={factor}") for count, factor in plain.PAIRS[4:]]


GZIP = b"\x1f\x8b"
