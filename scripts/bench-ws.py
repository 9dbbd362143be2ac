"""CPU time of the server per WebSocket message: Citius beside other Python servers, echo and broadcast.

    make .venv-ws/ready
    .venv/bin/python scripts/bench-ws.py .venv-ws [--seconds 1] [--rounds 5] [--works echo-16 …] [--servers …]

`citius load` is the client, on another core where there are two, with 32 connections and without compression.
An echoed message is a text of so many bytes that is sent again when it has come back, the one that a
connection has under way or one of eight. A message of a broadcast goes from one of four senders to all 32,
and each copy is a message here. ASGI applications are the same for all servers; others do what they do.

Rounds are interleaved, and the first is for warming up. A figure is the CPU time of all the server's
processes (schedstat) over the messages received, the median of the rounds. `x citius` is that of the rounds'
own ratios to Citius with its native interface, with their smallest and largest, and `x asgi` to Citius with
the ASGI application: how many messages Citius moves in the CPU time of one. A server that does not start, or
answers wrongly, is passed over with a word.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cpu_time import cpu_s

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[1]
LOAD = ROOT / "lab/citius_lab/bin/citius-load"
CONNECTIONS = 32

APPS = {
    "native_app.py": """
from citius import App

app = App()
room = app.room("all")

@app.websocket("/echo")
async def echo(ws):
    async for message in ws:
        await ws.send(message)

@app.websocket("/all")
async def broadcast(ws):
    room.join(ws)
    async for message in ws:
        room.send(message)
""",
    "asgi_app.py": """
members = []

async def app(scope, receive, send):
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/all":
        return await broadcast(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})

async def broadcast(receive, send):
    members.append(send)
    try:
        while (message := await receive())["type"] == "websocket.receive":
            copy = {"type": "websocket.send", "text": message["text"]}
            for member in members.copy():
                try:
                    await member(copy)
                except Exception:
                    pass  # that one has left
    finally:
        members.remove(send)
""",
    "rsgi_app.py": """
from granian.rsgi import WebsocketMessageType

members = []

async def app(scope, protocol):
    transport = await protocol.accept()
    if scope.path == "/all":
        return await broadcast(transport)
    while (message := await transport.receive()).kind == WebsocketMessageType.string:
        await transport.send_str(message.data)

async def broadcast(transport):
    members.append(transport)
    try:
        while (message := await transport.receive()).kind == WebsocketMessageType.string:
            for member in members.copy():
                try:
                    await member.send_str(message.data)
                except Exception:
                    pass
    finally:
        members.remove(transport)
""",
    "socketify_app.py": """
import sys
from socketify import App, CompressOptions

def echo(ws, message, opcode):
    ws.send(message, opcode)

def join(ws):
    ws.subscribe("all")

def broadcast(ws, message, opcode):
    ws.publish("all", message, opcode)  # to its sender, too

app = App()
plain = {"compression": CompressOptions.DISABLED, "max_payload_length": 1 << 24, "idle_timeout": 120}
app.ws("/echo", {**plain, "message": echo})
app.ws("/all", {**plain, "open": join, "message": broadcast})
app.listen({"port": int(sys.argv[1]), "host": "127.0.0.1"}, lambda config: None)
app.run()
""",
}

CITIUS = [sys.executable, "-m", "citius", "serve", "--port", "{port}", "--no-access-log",
          "--ws-per-message-deflate", "false"]  # fmt: skip
UVICORN = ["{python}", "-m", "uvicorn", "asgi_app:app", "--port", "{port}", "--no-access-log",
           "--lifespan", "off", "--loop", "uvloop", "--http", "httptools", "--log-level", "error",
           "--ws-per-message-deflate", "false"]  # fmt: skip
GRANIAN = ["{python}", "-m", "granian", "--port", "{port}", "--loop", "uvloop", "--no-access-log",
           "--log-level", "error"]  # fmt: skip

SERVERS = {
    "citius": [*CITIUS, "native_app.py"],
    "socketify": ["{python}", "socketify_app.py", "{port}"],
    "granian rsgi": [*GRANIAN, "--interface", "rsgi", "rsgi_app:app"],
    "citius asgi": [*CITIUS, "--lifespan", "off", "asgi_app:app"],
    "uvicorn websockets": [*UVICORN, "--ws", "websockets"],
    "uvicorn websockets-sansio": [*UVICORN, "--ws", "websockets-sansio"],
    "uvicorn wsproto": [*UVICORN, "--ws", "wsproto"],
    "granian asgi": [*GRANIAN, "--interface", "asginl", "asgi_app:app"],
    "gunicorn uvicorn-worker": [
        "{python}", "-m", "gunicorn", "asgi_app:app", "--bind", "127.0.0.1:{port}",
        "-k", "uvicorn_worker.UvicornWorker", "--log-level", "error",
    ],
}  # fmt: skip


class Work(NamedTuple):
    """What the client does."""

    path: str
    body_bytes: int
    options: list[str]


WORKS = {
    "echo-16": Work("/echo", 16, []),
    "echo-16-by-8": Work("/echo", 16, ["-p", "8"]),
    "echo-1024": Work("/echo", 1024, []),
    "echo-1024-by-8": Work("/echo", 1024, ["-p", "8"]),
    "broadcast-64": Work("/all", 64, ["--broadcast", "--senders", "4"]),
    "broadcast-1024": Work("/all", 1024, ["--broadcast", "--senders", "4"]),
}


class Server:
    """A server process on one CPU, and what its processes have used."""

    def __init__(self, name: str, python: str, folder: Path, cpu: int) -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port: int = one.getsockname()[1]
        command = [word.format(python=python, port=self.port) for word in SERVERS[name]]
        self._log = folder / f"{name}.log"
        with self._log.open("w") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log,
                preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
            )  # fmt: skip

    def wait_ready(self) -> None:
        """Wait until it listens.

        Raises:
            RuntimeError: It has ended, or does not within 20 s.
        """
        deadline = time.monotonic() + 20
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise RuntimeError(self._log.read_text()[-500:].strip()) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """TERM; KILL for who does not hear."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def cost_us(server: Server, work: Work, seconds: float, cpu: int) -> float:
    """CPU time of the server per message received.

    Raises:
        RuntimeError: A message was lost, or came back changed.
    """
    # Where it is a broadcast, its first bytes are overwritten with what it is timed by.
    command = [
        str(LOAD), f"ws://127.0.0.1:{server.port}{work.path}", "-c", str(CONNECTIONS), *work.options,
        "--body", "x" * work.body_bytes, "-d", f"{seconds}s", "--cpus", str(cpu), "--quiet", "--json", "-",
    ]  # fmt: skip
    before = cpu_s(server.process.pid)
    done = subprocess.run(command, capture_output=True, text=True)
    spent = cpu_s(server.process.pid) - before
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    record: dict[str, Any] = json.loads(done.stdout)
    if wrong := {kind: n for kind, n in record["errors"].items() if n}:
        raise RuntimeError(str(wrong))
    return spent / (record["completed"] + record["drained"]) * 1e6


def measure(
    running: dict[str, Server], work: str, seconds: float, rounds: int, cpu: int
) -> dict[str, list[float]]:
    """Each server's figures, round by round; who fails has none."""
    seen: dict[str, list[float]] = {name: [] for name in running}
    for turn in range(rounds + 1):
        for name in list(seen):
            try:
                figure = cost_us(running[name], WORKS[work], seconds, cpu)
            except RuntimeError as error:
                print(f"bench-ws: {name}, {work}: {error}", file=sys.stderr)
                del seen[name]
                continue
            if turn:
                seen[name].append(figure)
    return seen


def ratio(figures: Sequence[float], own: Sequence[float] | None) -> str:
    """How much more a server needs than one of ours, in each round."""
    if not own:
        return f"{'':20}"
    each = [figure / of_ours for figure, of_ours in zip(figures, own, strict=True)]
    return f"{statistics.median(each):7.2f} {f'({min(each):.2f}-{max(each):.2f})':12}"


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("environment", type=Path, help="where the other servers are")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each server in a round [1]")
    parser.add_argument("--rounds", type=int, default=5, help="after one for warming up [5]")
    parser.add_argument("--works", nargs="*", choices=WORKS, default=list(WORKS))
    parser.add_argument("--servers", nargs="*", choices=SERVERS, default=list(SERVERS))
    given = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))
    python = os.path.abspath(given.environment / "bin/python")
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        for name, source in APPS.items():
            (Path(directory) / name).write_text(source)
        running: dict[str, Server] = {}
        for name in given.servers:
            server = Server(name, python, Path(directory), cpus[0])
            stack.callback(server.stop)
            try:
                server.wait_ready()
            except RuntimeError as error:
                print(f"bench-ws: no {name}: {error}", file=sys.stderr)
                continue
            running[name] = server
        for work in given.works:
            seen = measure(running, work, given.seconds, given.rounds, cpus[-1])
            print(f"{work:26}  µs/message   x citius             x asgi", flush=True)
            for name, figures in seen.items():
                against = (ratio(figures, seen.get(ours)) for ours in ("citius", "citius asgi"))
                print(f"  {name:26}{statistics.median(figures):8.2f}  ", *against, flush=True)


if __name__ == "__main__":
    main()
