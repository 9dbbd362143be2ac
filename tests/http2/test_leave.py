"""Workers that are replaced or stopped under load: no stream that was taken goes without its answer."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from rig import Server, children, wait_for

LOAD = Path(__file__).parents[2] / "lab/citius_lab/bin/citius-load"
APP = """
@app.get("/")
async def pid():
    await asyncio.sleep(0.002)
    return str(os.getpid())
"""

pytestmark = pytest.mark.skipif(
    not os.access(LOAD, os.X_OK), reason="the load generator is not built; `make build` does it"
)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_no_stream_is_lost(serve, number: signal.Signals) -> None:
    server: Server = serve(APP, "--workers", "2", "--no-access-log")
    before = set(children(server))
    load = subprocess.Popen(
        [str(LOAD), f"http://127.0.0.1:{server.port}/", "--http2", "--streams", "20", "-c", "8",
         "-d", "3s", "--json", "-", "--quiet"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        time.sleep(1)  # load that is steady before anything happens
        server.signal(number)
        out, err = load.communicate(timeout=25)
    finally:
        load.kill()
    assert out, err
    record = json.loads(out)
    # After TERM connections are refused; every accepted connection gets its responses.
    tolerated = {"connect"} if number == signal.SIGTERM else set()
    assert {kind for kind, n in record["errors"].items() if n} <= tolerated, record["errors"]
    assert record["completed"] > 100
    if number == signal.SIGTERM:
        assert server.wait() == 0
    else:
        wait_for(lambda: not before & set(children(server)), "the old workers to end")


@pytest.mark.parametrize("at_once", [1, 10])
def test_httpx_loses_no_request_to_a_drain(serve, at_once: int) -> None:
    """servers D2: Python's h2 reads nothing behind a GOAWAY."""
    server: Server = serve(APP, "--workers", "2", "--no-access-log", "--max-requests", "100")
    before = set(children(server))

    async def ask(client: httpx.AsyncClient) -> None:
        for _ in range(400 // at_once):
            assert (await client.get("/")).status_code == 200

    async def talk() -> None:
        base = f"http://127.0.0.1:{server.port}"
        async with httpx.AsyncClient(http1=False, http2=True, base_url=base) as client:
            await asyncio.gather(*(ask(client) for _ in range(at_once)))

    asyncio.run(talk())
    wait_for(lambda: before - set(children(server)), "a worker to be replaced")
