"""A function that awaits what is cancelled has failed: its caller gets a response. Sessions of WebTransport:
``tests/http3/test_session_calls.py``; mounted services: ``test_rpc_paths.py``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from citius import App
from citius.mcp import Context
from citius.testing import Client
from mcp_rig import VERSIONS, Session

app = App()
mcp = app.mcp("/mcp", name="tests")
app.connect("/api")


async def use_cancelled(waits: bool) -> None:
    """Await a task that is cancelled by others."""
    task = asyncio.get_running_loop().create_future()
    if waits:
        asyncio.get_running_loop().call_soon(task.cancel)
    else:
        task.cancel()
    await task


@app.rpc
async def one(waits: bool) -> None:
    await use_cancelled(waits)


@app.rpc
async def many(waits: bool) -> AsyncIterator[int]:
    yield 1
    await use_cancelled(waits)


@mcp.tool
async def plain(waits: bool) -> None:
    await use_cancelled(waits)


@mcp.tool
async def talking(context: Context, waits: bool) -> None:
    await context.info("begins")
    await use_cancelled(waits)


@mcp.resource("notes://{number}")
async def note(number: str) -> str:
    await use_cancelled(number == "1")
    return ""


@pytest.mark.parametrize("waits", [False, True])
def test_procedures_by_connect(waits: bool) -> None:
    body = json.dumps({"waits": waits}).encode()
    with Client(app, raise_errors=False) as client:
        response = client.post("/api/citius.Procedures/one", json={"waits": waits})
        assert (response.status_code, response.json()["code"]) == (499, "canceled")
        response = client.post(
            "/api/citius.Procedures/many", content=b"\0" + len(body).to_bytes(4, "big") + body,
            headers={"content-type": "application/connect+json"},
        )  # fmt: skip
        assert b'{"result":1}' in response.content
        assert b'"code":"canceled"' in response.content


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("waits", [False, True])
def test_tools_and_resources(version: str, waits: bool) -> None:
    with Client(app, raise_errors=False) as client:
        session = Session(client, version)
        for name in ("plain", "talking"):
            result = session.call(name, waits=waits)
            assert result["isError"] is True
            assert result["content"] == [{"type": "text", "text": f"the tool {name} failed"}]
        error = session.error("resources/read", {"uri": f"notes://{int(waits)}"})
        assert error["code"] == -32603
