"""HttpArena's static files: golden content, as ``contestants/shared/arena/make.py`` makes the files."""

from __future__ import annotations

import random as chances
from functools import cache
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import Mixed, code_of, expect

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

compressed = code_of("arena-json-comp")


@cache
def content(name: str) -> bytes:
    """Return the content of a file."""
    chance = chances.Random(name)
    n_bytes = SIZES[name] * 1024
    if name.endswith((".woff2", ".webp")):
        return chance.randbytes(n_bytes)
    letters = "abcdefghijklmnopqrstuvwxyz-"
    words = ["".join(chance.choices(letters, k=chance.randrange(3, 12))) for _ in range(400)]
    text = ""
    while len(text) < n_bytes:
        text += f"  {chance.choice(words)}: {chance.choice(words)} {chance.randrange(100)};\n"
    return text[:n_bytes].encode()


def check(answer: Response, target: str) -> None:
    """Compare the file, as it is or decompressed."""
    golden = content(target.rpartition("/")[2])
    found = answer.body if answer.body == golden else compressed.decompressed(answer.body)
    expect(f"arena-static, {target}", True, found == golden)


def probe(random: random.Random) -> str:
    """Return the target of one of the files."""
    return f"/static/{random.choice(list(SIZES))}"


def requests(random: random.Random) -> list[Mixed]:
    """Return a request for each file."""
    return [Mixed(f"/static/{name}") for name in SIZES]


# KiB.
SIZES = {
    "reset.css": 8, "layout.css": 25, "theme.css": 40, "components.css": 200, "utilities.css": 55,
    "analytics.js": 12, "helpers.js": 15, "app.js": 60, "vendor.js": 300, "router.js": 20,
    "header.html": 120, "footer.html": 55, "regular.woff2": 18, "bold.woff2": 22, "logo.svg": 15,
    "icon-sprite.svg": 70, "hero.webp": 45, "thumb1.webp": 6, "thumb2.webp": 8, "manifest.json": 3,
}  # fmt: skip
