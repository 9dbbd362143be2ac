"""What protects WebSockets protects sessions: dependencies, middleware, schemes, origins, hosts."""

# pyright: basic

from __future__ import annotations

import asyncio
import json

from rig import application
from wtpeer import wt_client

ORIGIN = ("origin", "https://elsewhere.example")


def test_every_kind_of_protection(serve_h3) -> None:
    server = serve_h3(app=application("webtransport_protection_app"))

    async def main() -> None:
        async with wt_client(server) as client:
            names = json.loads((await client.get("/names")).body)
            assert len(names) > 10
            for name in names:
                status = await client.status(client.ask(name, ORIGIN))
                if "limit" in name:
                    assert status == 200
                    status = await client.status(client.ask(name, ORIGIN))
                assert status in (400, 401, 403, 421, 429), name
            session = await client.session("/free/member", ORIGIN)
            assert await session.closed() == (0, "SECRET")

    asyncio.run(main())
