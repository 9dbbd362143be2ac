"""The examples of docs/guides/redis.md, with a real Redis."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from citius.testing import AsyncClient
from redis_rig import SERVER, Server

GUIDE = (Path(__file__).parents[2] / "docs/guides/redis.md").read_text()


def example(heading: str) -> str:
    """The code of a section. A block that begins with `# …` goes on with those before it."""
    text = ""
    for section in re.split(r"^## ", GUIDE, flags=re.M):
        for block in re.findall(r"^```python\n(.*?)^```", section, re.M | re.S):
            text = text + block if block.startswith("# …") else block
        if section.startswith(heading + "\n"):
            return text
    raise AssertionError(f"there is no section {heading!r}")


STEPS = {
    "A client": """[
        await client.put("/items/1?name=pen"), (await client.get("/items/1")).json(),
        (await client.get("/items/2")).status_code, (await client.post("/visits")).json(),
        (await client.get("/summary")).json(),
    ][1:] == [{"id": 1, "name": "pen"}, 404, 1, {"visits": 1, "names": 0}]""",
    "Transactions": """[
        (await client.post("/transfer?amount=5")).json(), await redis.set("stock", 1),
        (await client.post("/buy")).json(), (await client.post("/buy")).status_code,
    ] == [5, True, 0, 409]""",
    "Scripts": """[
        await redis.set("stock", 7), (await client.post("/take?amount=5")).json(),
        (await client.post("/take?amount=5")).json(),
    ] == [True, 2, -1]""",
    "Messages": """[(await client.post("/news?text=hello")).json()] == [0]""",
    "Code that waits serially": """[
        await redis.set("total", 7), (await client.get("/total")).json(),
    ] == [True, 7]""",
    "Dependencies and tests": """(await client.get("/visits")).status_code == 204""",
    "redis-py": """[(await client.post("/visits")).json()] == [1]""",
}


@pytest.fixture(scope="module")
def redis():
    if SERVER is None:
        pytest.skip("no redis-server (Debian: apt-get install redis-server)")
    made = Server(listens=True)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.mark.parametrize("heading", STEPS)
def test_an_example(heading: str, redis: Server, tmp_path: Path) -> None:
    redis.say("FLUSHALL")
    source = example(heading).replace("redis://localhost", redis.url)
    source = source.replace("port=6379", f"port={redis.port}")
    program = f"""{source}
import asyncio
from citius.testing import AsyncClient

async def main():
    async with AsyncClient(app) as client:
        assert {STEPS[heading]}

asyncio.run(asyncio.wait_for(main(), 20))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_message_reaches_a_web_socket(redis: Server) -> None:
    redis.say("FLUSHALL")
    names: dict[str, Any] = {}
    exec(example("Messages").replace("redis://localhost", redis.url), names)

    async def main() -> None:
        async with AsyncClient(names["app"]) as client, client.websocket("/news") as socket:
            await client.post("/news?text=hello")
            assert await socket.receive() == b"hello"

    asyncio.run(asyncio.wait_for(main(), 20))
