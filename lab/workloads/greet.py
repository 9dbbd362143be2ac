"""The greeting of a target, and requests as browsers send them, no two alike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def greeting(target: str) -> dict[str, list[str]]:
    """Return the object that a target asks for."""
    parts = urlsplit(target)
    (times,) = parse_qs(parts.query)["times"]
    return {"hello": [parts.path.removeprefix("/greet/")] * int(times)}


def check(answer: Response, target: str) -> None:
    """Compare the object; spaces between its parts are the server's own."""
    try:
        found = json.loads(answer.body)
    except ValueError:
        raise WrongResponse(f"greet: expected JSON, got {short(answer.body)}") from None
    expect(f"greet, {target}", greeting(target), found)


def probe(random: random.Random) -> str:
    """Return a target with a random name and number."""
    name = "".join(random.choices(LETTERS, k=random.randrange(1, 24)))
    return f"/greet/{name}?times={random.randrange(1, 9)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return requests of which no two are alike, each as one of three browsers sends it."""
    return [
        Mixed(probe(random), headers=(*random.choice(BROWSERS), *_own(random, number)))
        for number in range(REQUESTS)
    ]


def _own(random: random.Random, number: int) -> tuple[tuple[str, str], ...]:
    """Return what differs between two users of one browser."""
    session = f"{random.getrandbits(128):032x}"
    visitor = f"GA1.1.{random.randrange(10**9)}.{1700000000 + number}"
    return (
        ("Referer", f"https://shop.example/list?page={number}&sort={random.choice(LETTERS)}"),
        ("Cookie", f"sid={session}; _ga={visitor}; consent=1; theme={random.choice(THEMES)}"),
    )


LETTERS = "abcdefghijklmnopqrstuvwxyz"
THEMES = ("light", "dark", "auto")
# More than servers keep of the requests they have seen.
REQUESTS = 1024
_CHROME = (
    ("Connection", "keep-alive"),
    ("sec-ch-ua", '"Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"'),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", '"Windows"'),
    ("Upgrade-Insecure-Requests", "1"),
    (
        "User-Agent",
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/130.0.0.0 Safari/537.36",
    ),
    (
        "Accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    ),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Dest", "document"),
    ("Accept-Language", "en-GB,en;q=0.9,de;q=0.8"),
)
_FIREFOX = (
    (
        "User-Agent",
        "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
    ),
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Accept-Language", "fr,fr-FR;q=0.8,en-US;q=0.5,en;q=0.3"),
    ("Connection", "keep-alive"),
    ("Upgrade-Insecure-Requests", "1"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Priority", "u=0, i"),
)
_SAFARI = (
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("Sec-Fetch-Site", "same-origin"),
    ("Sec-Fetch-Dest", "document"),
    ("Sec-Fetch-Mode", "navigate"),
    (
        "User-Agent",
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 "
        "(KHTML, like Gecko) Version/18.1 Safari/605.1.15",
    ),
    ("Accept-Language", "en-US,en;q=0.9"),
    ("Connection", "keep-alive"),
)
BROWSERS = (_CHROME, _FIREFOX, _SAFARI)
