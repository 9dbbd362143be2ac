"""``--reload`` with HTTP/3: the port stays, and clients find the new code there."""

# pyright: basic

from __future__ import annotations

import asyncio
from pathlib import Path

from h3peer import h3_client
from rig import Server

SOURCE = (
    "from citius import App\napp = App()\n@app.get('/')\ndef version() -> str:\n    return '{}'\n"
)


def test_a_change_is_served_at_the_same_port(serve_h3, tmp_path: Path) -> None:
    server: Server = serve_h3("--reload", "--reload-delay-s", "0.05", app=SOURCE.format("first"))
    module = tmp_path / "main.py"

    async def version() -> bytes:
        async with h3_client(server) as client:
            return (await client.get("/")).body

    async def main() -> None:
        assert b"first" in await version()
        async with h3_client(server) as kept:
            assert b"first" in (await kept.get("/")).body
            module.write_text(SOURCE.format("second"))
            server.wait_for_log(r"serves on", 2)
            assert b"second" in await version()
            # The old process has taken its connections with it, and says so.
            for _ in range(1000):
                if kept.terminated is not None or kept.is_reset:
                    break
                kept.begin("/")
                kept.transmit()
                await asyncio.sleep(0.01)  # between two requests
            assert kept.terminated is not None or kept.is_reset

    asyncio.run(main())
