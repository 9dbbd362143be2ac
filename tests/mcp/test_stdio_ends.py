"""``citius mcp``: how it ends, what the application gets of standard input, and many requests at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from citius.mcp.stdio import RUNNING_MAX, WAITING_MAX, _lines  # pyright: ignore[reportPrivateUsage]
from mcp_rig import Process, request

SOURCE = """
import asyncio
import os
import subprocess
import sys
import threading
from dataclasses import dataclass

from citius import App
from citius.mcp import Context

print("imported")
os.write(1, b"imported, too")
app = App()
mcp = app.mcp("/mcp")
called = []


@dataclass
class Form:
    name: str


@mcp.tool
def reads() -> list[str]:
    child = subprocess.run(["cat"], capture_output=True, text=True, timeout=20)
    return [sys.stdin.read(), os.read(0, 100).decode(), child.stdout]


@mcp.tool
def ping() -> str:
    return "here"


@mcp.tool
async def sleeps() -> None:
    await asyncio.Event().wait()


@mcp.tool(blocking=True)
def blocks() -> None:
    threading.Event().wait()


@mcp.tool
async def stays() -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass


@mcp.tool
def large() -> str:
    return "x" * 1_000_000


@mcp.tool
async def asks(context: Context, number: int) -> list[int]:
    called.append(number)
    await context.elicit("?", Form)
    return called
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    (tmp_path / "main.py").write_text(SOURCE)
    made = Process("main:app", "--app-dir", str(tmp_path))
    with made.process:
        yield made
        made.process.kill()


def call(name: str, identifier: int, **arguments: Any) -> dict[str, Any]:
    return request("tools/call", identifier, name=name, arguments=arguments)


def test_the_application_reads_no_messages(process: Process) -> None:
    """Nor do its processes: what they took would be missing."""
    process.initialize()
    process.send(call("reads", 1), call("ping", 2))
    found = {one["id"]: one["result"] for one in (process.next(), process.next())}
    assert found[1]["structuredContent"] == {"result": ["", "", ""]}
    assert found[2]["content"][0]["text"] == "here"
    left, errors = process.end()
    assert left == []
    assert "imported" in errors
    assert "imported, too" in errors


@pytest.mark.parametrize("name", ["sleeps", "blocks", "stays", "large"])
@pytest.mark.parametrize("how", ["end", "signal"])
def test_nothing_keeps_it(process: Process, name: str, how: str) -> None:
    """Clients start a server for each session; one that stays is one more each time."""
    process.initialize()
    process.send(call(name, 1), call("ping", 2))
    if name != "large":
        assert process.next()["id"] == 2  # the other one has begun
    assert process.process.stdin is not None
    if how == "end":
        process.process.stdin.close()
    else:
        process.process.send_signal(signal.SIGTERM)
    assert process.process.wait(timeout=30) == 0
    assert process.process.stderr is not None
    assert b"Fatal" not in process.process.stderr.read()


def test_answers_are_read_while_many_calls_wait_for_them(process: Process) -> None:
    process.initialize(elicitation={})
    n_calls = 2 * RUNNING_MAX
    process.send(*(call("asks", number, number=number) for number in range(1, n_calls + 1)))
    last = n_calls
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    process.send(cancelled | {"params": {"requestId": last}})
    results: dict[int, Any] = {}
    while len(results) < n_calls - 1:
        message = process.next()
        if "method" in message:
            content = {"action": "accept", "content": {"name": "a"}}
            process.send({"jsonrpc": "2.0", "id": message["id"], "result": content})
        else:
            results[message["id"]] = message["result"]
    assert set(results) == set(range(1, n_calls))
    process.send(call("asks", last + 1, number=0))
    question = process.next()
    process.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})
    called = process.next()["result"]["structuredContent"]["result"]
    assert last not in called, "it was cancelled before it had begun"


def test_requests_of_a_file_are_all_served(process: Process) -> None:
    """Its end is there before most have begun."""
    process.initialize()
    n_calls = RUNNING_MAX + WAITING_MAX + 100
    process.send(*(call("ping", number) for number in range(n_calls)))
    left, _ = process.end()
    assert {one["id"] for one in left} == set(range(n_calls))


@pytest.mark.parametrize("piece_bytes", [1, 3, 1000])
def test_lines(piece_bytes: int) -> None:
    source, sink = os.pipe()
    text = b"a\n\nlong enough\ntoo long, and more\nb\ncut off at its end"

    def write() -> None:
        for at in range(0, len(text), piece_bytes):
            os.write(sink, text[at : at + piece_bytes])
        os.close(sink)

    writing = threading.Thread(target=write)
    writing.start()
    expected = [b"a", b"", b"long enough", b"too long, an", b"b", b"cut off at i"]
    assert list(_lines(source, 11)) == expected
    writing.join()
    os.close(source)
