"""The first command of docs/guides/scaling.md: two nodes, and a client of each."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import websockets
from rig import free_port

ROOT = Path(__file__).parents[2]

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)


@pytest.mark.parametrize("is_interrupted", [True, False])
def test_two_nodes_and_a_client_of_each(is_interrupted: bool) -> None:
    ports = [free_port(), free_port()]
    command = [sys.executable, str(ROOT / "examples/cluster/up.py"), *map(str, ports)]
    up = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)

    async def join(port: int, after: str = "") -> websockets.ClientConnection:
        async with asyncio.timeout(30):
            while True:
                try:
                    return await websockets.connect(
                        f"ws://127.0.0.1:{port}/lobby?name=ann&after={after}"
                    )
                except OSError:
                    await asyncio.sleep(0.05)

    async def talk() -> None:
        async with asyncio.timeout(60):
            one, two = await join(ports[0]), await join(ports[1])
            await one.send("hello")
            identifier, _, text = str(await two.recv()).partition("\n")
            assert text == "ann: hello"
            await two.close()
            await one.send("again")
            back = await join(ports[1], identifier)
            assert str(await back.recv()).endswith("\nann: again")
            await back.close()
            await one.close()

    try:
        asyncio.run(talk())
    finally:
        if is_interrupted:
            os.killpg(up.pid, signal.SIGINT)  # CTRL+C
        else:
            up.terminate()
        assert up.wait(30) == 0
    for port in ports:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port))


def test_a_port_that_is_taken_ends_it_all() -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [str(port), str(taken.getsockname()[1])]
        command = [sys.executable, str(ROOT / "examples/cluster/up.py"), *ports]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert ports[1] in done.stderr
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))
