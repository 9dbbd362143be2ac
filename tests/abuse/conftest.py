"""One server per limit, with that limit lowered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rig import Server

APP = """
@app.get("/")
def hello():
    return "Hello"

@app.post("/echo")
def echo(request):
    return request.body()

@app.get("/slow/{ms:int}")
async def slow(ms: int):
    app.state.running = getattr(app.state, "running", 0) + 1
    await asyncio.sleep(ms / 1000)
    return "slow"

@app.get("/running")
def running():
    return getattr(app.state, "running", 0)

@app.post("/ignore", stream=True)
async def ignore(request):
    return "ignored"

@app.get("/endless")
def endless():
    try:
        while True:
            yield b"x" * 65536
    finally:
        app.state.closed = True

@app.get("/closed")
def closed():
    return getattr(app.state, "closed", False)
"""


@pytest.fixture
def limited(serve) -> Callable[..., Server]:
    """``limited(head_bytes_max=100)``."""

    def start(**limits: int) -> Server:
        flags = [f"--{name.replace('_', '-')}={value}" for name, value in limits.items()]
        return serve(APP, *flags)

    return start
