"""Values of header fields of uploads. Tests: ``tests/uploads/``."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

ALGORITHMS: Final = ("sha1", "sha256", "sha512", "md5")
"""What ``Upload-Checksum`` may be."""


def boolean(text: str | None) -> bool | None:
    """A Boolean of a structured field; ``None`` for what is none."""
    return {"?1": True, "?0": False}.get((text or "").strip())


def integer(text: str | None) -> int | None:
    """An Integer that is not negative, of a structured field or of tus; ``None`` for what is none."""
    text = (text or "").strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def filename_of(disposition: str) -> str:
    """The name in a ``Content-Disposition``; that of RFC 8187 first."""
    plain = ""
    for name, value in _parameters(disposition):
        if name == "filename*" and value.lower().startswith("utf-8''"):
            return base_name(unquote(value[7:]))
        if name == "filename":
            plain = value
    return base_name(plain)


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    """The parameters of a value, whose quoted strings may have semicolons."""
    _, _, rest = text.partition(";")
    while rest:
        name, equals, rest = rest.partition("=")
        if not equals:
            return
        rest = rest.lstrip()
        if not rest.startswith('"'):
            value, _, rest = rest.partition(";")
            yield name.strip().lower(), value.strip()
            continue
        at, made = 1, ""
        while at < len(rest) and rest[at] != '"':
            at += rest[at] == "\\"
            made += rest[at : at + 1]
            at += 1
        yield name.strip().lower(), made
        _, _, rest = rest[at + 1 :].partition(";")


def base_name(name: str) -> str:
    """The last part of a name, without what a file system may take for something else."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return "".join(c for c in last if c.isprintable()).strip(". ")[:255]


def metadata_of(text: str) -> dict[str, str]:
    """What ``Upload-Metadata`` of tus says.

    Raises:
        ValueError: A value is no Base64 of a text.
    """
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = pair.partition(" ")
        try:
            found[name] = base64.b64decode(value, validate=True).decode()
        except ValueError:
            raise ValueError(f"the value of {name!r} is no Base64 of a text") from None
    return found


def checksum_of(text: str) -> tuple[str, bytes] | None:
    """Algorithm and digest of ``Upload-Checksum``; ``None`` for what is none."""
    algorithm, _, encoded = text.partition(" ")
    try:
        digest = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    if algorithm not in ALGORITHMS or len(digest) != hashlib.new(algorithm).digest_size:
        return None
    return algorithm, digest
