"""Makes what HttpArena mounts into each entry, in a folder: make.py FOLDER

``dataset.json`` has 50 items of the fields that HttpArena's have. ``static/`` has twenty files of the names and
sizes of HttpArena's; texts repeat themselves as style sheets and scripts do, and lie there compressed, too, as
``.gz`` and, where Python's brotli is installed, as ``.br``. The lab's checks make the same content on their own.
"""

import gzip
import importlib.util
import json
import pathlib
import random
import sys

NAMES = ("Alpha Widget", "Pro Valve", "Core Relay", "Edge Link", "Micro Pump")
CATEGORIES = ("electronics", "tools", "books", "clothing", "office", "garden", "toys", "sports")
TAGS = ("sale", "heavy-duty", "popular", "fast", "new", "wireless", "eco", "limited")
# KiB, as HttpArena's documentation has them.
SIZES = {
    "reset.css": 8, "layout.css": 25, "theme.css": 40, "components.css": 200, "utilities.css": 55,
    "analytics.js": 12, "helpers.js": 15, "app.js": 60, "vendor.js": 300, "router.js": 20,
    "header.html": 120, "footer.html": 55, "regular.woff2": 18, "bold.woff2": 22, "logo.svg": 15,
    "icon-sprite.svg": 70, "hero.webp": 45, "thumb1.webp": 6, "thumb2.webp": 8, "manifest.json": 3,
}  # fmt: skip
BINARY = (".woff2", ".webp")


def item(number):
    return {
        "id": number,
        "name": f"{NAMES[number % 5]} {number}",
        "category": CATEGORIES[number % 8],
        "price": number * 79 % 500 + 1,
        "quantity": number * 31 % 100 + 1,
        "active": number % 3 != 0,
        "tags": [TAGS[number % 8], TAGS[(number * 3 + 1) % 8]],
        "rating": {"score": number * 7 % 50 + 1, "count": number * 13 % 500 + 1},
    }


def content(name):
    chance = random.Random(name)
    n_bytes = SIZES[name] * 1024
    if name.endswith(BINARY):
        return chance.randbytes(n_bytes)
    # Lines of some hundred different words: the usual compressors make a tenth to a fifth of it.
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz-", k=chance.randrange(3, 12))) for _ in range(400)]
    text = ""
    while len(text) < n_bytes:
        text += f"  {chance.choice(words)}: {chance.choice(words)} {chance.randrange(100)};\n"
    return text[:n_bytes].encode()


def main(folder):
    static = folder / "static"
    static.mkdir(parents=True, exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps([item(number) for number in range(1, 51)]))
    for name in SIZES:
        data = content(name)
        (static / name).write_bytes(data)
        if not name.endswith(BINARY):
            (static / f"{name}.gz").write_bytes(gzip.compress(data, 9, mtime=0))
            if importlib.util.find_spec("brotli"):
                import brotli

                (static / f"{name}.br").write_bytes(brotli.compress(data, quality=11))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
