"""HttpArena's JSON profile with compression: what is compressed has to be, by gzip or brotli."""

from __future__ import annotations

import gzip
import zlib
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import Mixed, WrongResponse, code_of, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

plain = code_of("arena-json")
# An extra of the lab's: it has no wheel for a CPython without a GIL.
brotli: Any = import_module("brotli") if find_spec("brotli") else None


def decompressed(content: bytes) -> bytes:
    """Return what was compressed, by gzip or brotli.

    Raises:
        WrongResponse: It is neither.
    """
    is_gzip = content[:2] == GZIP
    if not is_gzip and brotli is None:
        raise WrongResponse("cannot be checked without brotli: pip install 'citius-lab[arena]'")
    wrong = (OSError, EOFError, zlib.error) if is_gzip else brotli.error
    try:
        found: bytes = (gzip if is_gzip else brotli).decompress(content)
    except wrong:
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
