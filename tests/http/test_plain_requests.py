"""Requests whose parts are kept for their origin are those that the general path makes, whatever the URL."""

# pyright: basic

from __future__ import annotations

import asyncio
import random

import pytest
from citius.http import Client, RequestError
from citius.testing.http import MockTransport

BASES = [
    None, "http://a", "http://a/", "http://a/v1", "http://a/v1/", "https://A.example:444/x",
    "http://a/x?k=1", "http://u:p@a/", "http://a//x",
]  # fmt: skip
PIECES = [
    "/", "/", "a", "7", "..", ".", "?", "&", "=", "#", "%", "%2F", "%zz", " ", "\\", ":", "@", ";", "ü", "//",
    "http://b", "https://b:8443", "http://a", "HTTP://a", "http://u:p@b", "http://b:0", "http://b:99999",
    "[", "|", "\n", "x" * 3000, "~", "+", "'",
]  # fmt: skip


async def said(mock: MockTransport, client: Client, way: str, method: str, url: str) -> object:
    """What was sent, or why nothing was."""
    mock.calls.clear()
    options = {"json": {"a": 1}} if method != "GET" else {}
    try:
        if way == "kept":
            response = await getattr(client, method.lower())(url, **options)
        else:
            response = await client.request(method, url, **options)
    except RequestError as error:
        return type(error), error.method, error.url
    (call,) = mock.calls
    sent = call.method, str(call.url), sorted(call.headers.items()), call.content
    return *sent, response.url, response.request.url, response.method


@pytest.mark.parametrize("params", [None, {"p": "1"}])
@pytest.mark.parametrize("base", BASES)
def test_both_paths_send_the_same(base: str | None, params: dict[str, str] | None) -> None:
    chosen = random.Random(f"{base} {params}")
    urls = ["/", "", "/a", "a", "?q", "/a?", "/a?b=c", "http://b/a", "http://b//a", "//b/a"]
    urls += ["".join(chosen.choices(PIECES, k=chosen.randint(1, 5))) for _ in range(400)]
    mock = MockTransport()
    mock.add("*", "*", content=b"it")
    options = {"trust_env": False, "headers": {"x-api-key": "secret"}, "params": params}

    async def ask() -> None:
        kept, general = (Client(base, transport=mock, **options) for _ in range(2))
        for url in urls:
            for method in ("GET", "POST"):
                found = await said(mock, kept, "kept", method, url)
                assert found == await said(mock, general, "general", method, url), (method, url)

    asyncio.run(ask())
