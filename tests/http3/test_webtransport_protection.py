"""What protects WebSockets protects sessions: dependencies, middleware, schemes, origins, hosts."""

# pyright: basic

from __future__ import annotations

import asyncio
import json

import pytest
from rig import application
from wtpeer import wt_client

ORIGIN = ("origin", "https://elsewhere.example")


def test_every_kind_of_protection(serve_h3) -> None:
    server = serve_h3(app=application("webtransport_protection_app"))

    async def main() -> None:
        async with wt_client(server) as client:
            names = json.loads((await client.get("/names")).body)
            assert len(names) > 35
            for name in names:
                status = await client.status(client.ask(name, ORIGIN))
                if "limit" in name:
                    assert status == 200
                    status = await client.status(client.ask(name, ORIGIN))
                assert status in (400, 401, 403, 421, 422, 429, 503), name
            session = await client.session("/free/member", ORIGIN)
            assert await session.closed() == (0, "SECRET")

    asyncio.run(main())


@pytest.mark.parametrize("protocol", ["webtransport", "webtransport-h3", "websocket"])
def test_nothing_but_an_acceptance_grants(serve_h3, protocol) -> None:
    """A 2xx of a handler, of middleware or of a mounted application was taken for a session by clients."""
    server = serve_h3(app=application("grants_sessions_app"))

    async def main() -> None:
        async with wt_client(server) as client:
            paths = ["/text", "/success", "/refusing/member", "/asgi/x", "/wsgi/x"]
            if protocol != "websocket":  # one is passed on
                paths.append("/forwarded")
            for path in paths:
                asked = client.ask(path, ("sec-websocket-version", "13"), protocol=protocol)
                assert await client.status(asked) >= 400, path
            assert (await client.get("/seen")).body == b"[]"
            assert client.terminated is None

    asyncio.run(main())
    server.wait_for_log("refused a WebSocket or session with a status of success")
