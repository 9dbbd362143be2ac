"""The example of tools over PostgreSQL, called over HTTP, by standard input, and by the official client."""

from __future__ import annotations

import asyncio
import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from citius.testing import postgres
from mcp_rig import STATELESS, Session
from rig import Server

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/tools/app.py"
TOOLS = ROOT / ".tools/mcp"


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    binaries = postgres.find_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    server = postgres.Server(binaries)
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


@pytest.fixture(scope="module")
def server(database: str, serve_module: Callable[..., Server]) -> Server:
    return serve_module(EXAMPLE, "--workers", "2", env={"DATABASE": database}).wait_ready()


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_a_model_fills_and_orders(server: Server, version: str) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=20) as http:
        session = Session(http, version)
        name = f"bolts of {version}"
        item = session.call("add_item", name=name, quantity=5)["structuredContent"]
        again = session.call("add_item", name=name, quantity=2)["structuredContent"]
        assert again == item | {"quantity": 7}
        found = session.call("search_items", text=f"OF {version}")["structuredContent"]["result"]
        assert found == [again]
        left = session.call("order_item", id=item["id"], quantity=3)["structuredContent"]
        assert left["quantity"] == 4
        assert "only 4 pieces" in session.text("order_item", id=item["id"], quantity=9)
        assert "no item" in session.text("order_item", id=0, quantity=1)
        assert "#/quantity" in session.text("order_item", id=item["id"], quantity=0)
        read = session.result("resources/read", {"uri": f"items://{item['id']}"})
        assert json.loads(read["contents"][0]["text"]) == left
        assert session.error("resources/read", {"uri": "items://0"})["code"] in (-32002, -32602)


def test_a_large_order_is_confirmed(server: Server) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=20) as http:
        session = Session(http, STATELESS, {"elicitation": {}})
        item = session.call("add_item", name="nuts", quantity=50)["structuredContent"]
        params = {"name": "order_item", "arguments": {"id": item["id"], "quantity": 20}}
        first = session.result("tools/call", params)
        answer = {"action": "accept", "content": {"confirmed": True}}
        params |= {"requestState": first["requestState"], "inputResponses": {"q1": answer}}
        assert session.result("tools/call", params)["structuredContent"]["quantity"] == 30


def test_workers_that_start_at_once_make_one_table(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE", f"{database}&options=-csearch_path%3Dstarts")
    app = runpy.run_path(str(EXAMPLE))

    async def start() -> None:
        async with app["pool"] as pool:
            await pool.execute("CREATE SCHEMA starts")
            for _ in range(10):
                await pool.execute("DROP TABLE IF EXISTS item")
                await asyncio.gather(*(app["create_table"]() for _ in range(8)))

    asyncio.run(start())


def test_by_standard_input(database: str) -> None:
    meta: dict[str, object] = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call: dict[str, object] = {
        "name": "add_item",
        "arguments": {"name": "pipes", "quantity": 1},
        "_meta": meta,
    }
    message: dict[str, object] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    done = subprocess.run(
        [sys.executable, "-m", "citius", "mcp", str(EXAMPLE)], input=json.dumps(message) + "\n",
        capture_output=True, text=True, timeout=60, env={"DATABASE": database, "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert json.loads(done.stdout)["result"]["structuredContent"]["name"] == "pipes", done.stderr


CLIENT = """\
import asyncio, json, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1], mode="legacy") as client:
        made = await client.call_tool("add_item", {"name": "screws", "quantity": 3})
        found = await client.call_tool("search_items", {"text": "screw"})
        print(json.dumps([made.structured_content, found.structured_content]))

asyncio.run(main())
"""


@pytest.mark.skipif(
    not (TOOLS / "ready").exists(), reason="`make .tools/mcp/ready` installs the official clients"
)
def test_by_the_official_client(server: Server) -> None:
    url = f"http://127.0.0.1:{server.port}/mcp"
    done = subprocess.run(
        [str(TOOLS / "python/bin/python"), "-c", CLIENT, url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    made, found = json.loads(done.stdout)
    assert made["name"] == "screws"
    assert found["result"] == [made]
