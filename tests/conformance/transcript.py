"""Reads transcripts (``vectors/README.md``): blocks of steps and what must come of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_ESCAPE = re.compile(r"\\(?:([rnt\\])|x([0-9a-fA-F]{2})|\*(\d+)\{([^}]*)\})")
_PLACE = re.compile(r"\\.")
_PLAIN = {"r": "\r", "n": "\n", "t": "\t", "\\": "\\"}


@dataclass(slots=True)
class Block:
    """Steps as (kind, bytes), ``>`` lines joined; then what must have come of them."""

    steps: list[tuple[str, bytes]] = field(default_factory=list)
    expectations: list[str] = field(default_factory=list)
    output: bytes = b""
    output_is_open: bool = False

    @property
    def closes(self) -> bool:
        """Whether the connection is closed when the block is over."""
        return any(line.split()[0] == "close" for line in self.expectations)


def unescape(text: str) -> bytes:
    """Return the bytes that ``text`` spells."""

    def one(match: re.Match[str]) -> str:
        plain, digits, times, what = match.groups()
        if times is not None:
            return unescape(what).decode("latin-1") * int(times)
        return _PLAIN[plain] if plain else chr(int(digits, 16))

    return _ESCAPE.sub(one, text).encode("latin-1")


def variants(text: str) -> dict[str, str]:
    """The texts that a file stands for, by the suffix of its name: one for each ``?`` line, if any."""
    named: dict[str, str] = {}
    for name, content in re.findall(r"^\? (\S+) ?(.*)$", text, re.M):
        rest = re.sub(r"^\? .*$", "", text, flags=re.M)
        named[f":{name}"] = _PLACE.sub(lambda m, c=content: c if m[0] == r"\?" else m[0], rest)
    return named or {"": text}


def parse(text: str) -> tuple[list[str], list[Block]]:
    """Return the settings (``:`` lines) and the blocks of a transcript."""
    settings: list[str] = []
    blocks = [Block()]
    for line in text.splitlines():
        kind, content = line[:1], line[2:]
        if kind in {">", "!", "@", "~"}:
            if blocks[-1].expectations or blocks[-1].output or blocks[-1].output_is_open:
                blocks.append(Block())
            steps = blocks[-1].steps
            if kind == ">" and steps and steps[-1][0] == ">":
                steps[-1] = (">", steps[-1][1] + unescape(content))
            else:
                steps.append((kind, unescape(content)))
        elif kind == ":":
            settings.append(content)
        elif kind == "=":
            blocks[-1].expectations.append(content.strip())
        elif kind == "<":
            blocks[-1].output_is_open = content.endswith("...")
            blocks[-1].output += unescape(content.removesuffix("..."))
    return settings, blocks


def fits_socket(settings: list[str], blocks: list[Block]) -> bool:
    """Whether the transcript makes sense over a socket, to a server with the echo application."""
    steps = [step for block in blocks for step in block.steps]
    return not settings and all(
        kind == ">" or (kind, what) == ("!", b"finish") for kind, what in steps
    )
