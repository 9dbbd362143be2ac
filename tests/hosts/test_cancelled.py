"""An application that cancels all tasks of its loop does not end the server."""

from __future__ import annotations

import signal

import pytest
from rig import Server

APP = """
@app.get("/cancel")
def cancel():
    return str(sum(task.cancel() for task in asyncio.all_tasks(asyncio.get_running_loop())))

@app.get("/")
async def index():
    await asyncio.sleep(0)
    return "hello"
"""


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_server_goes_on_when_all_tasks_are_cancelled(serve, loop: str) -> None:
    server: Server = serve(APP, "--loop", loop)
    with server.connect() as peer:
        for _ in range(3):
            assert peer.request("GET", "/cancel").status == 200
            assert peer.request("GET", "/").body == b"hello"
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert "Traceback" not in server.err
