#!/usr/bin/env python3
"""Rooms over Redis: how many messages two nodes deliver, and how late.

    lab/costs/rooms.py [--rate MESSAGES_PER_S] [--clients 1000] [--nodes 2] [--seconds 8]
    lab/costs/rooms.py --idle 10000 --nodes 1

Starts a redis-server, one server whose workers are the nodes (each has connections of its own to Redis
and its own share of the clients), and the lab's generator: one of its clients sends, and each message
goes to all. It says deliveries per second, latency from the instant at which a message was due, and the
CPU time of each side. With --idle: what each WebSocket that is in the room, and silent, takes of the nodes'
memory.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lab"), str(ROOT / "tests")]

import redis_rig  # noqa: E402

from citius_lab.processes import launch  # noqa: E402

APP = """
import os
from citius import App, WebSocket
from citius.cluster import Cluster

url = os.environ.get("CLUSTER")
app = App(cluster=Cluster(url) if url else None)
room = app.room("all")

@app.websocket("/all")
async def all_of_them(ws: WebSocket) -> None:
    room.join(ws)
    async for message in ws:
        room.send(message)
"""


def redis_server() -> redis_rig.Server:
    """Return a Redis that was started, on a Unix socket."""
    server = redis_rig.Server()
    server.program = shutil.which("redis-server")  # not Valkey, which the tests prefer
    server.start()
    return server


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and of what is below it and alive."""
    return sum(launch.cpu_clocks_s(launch.tree(pid)).values())


def idle(port: int, count: int, server: int) -> dict[str, object]:
    """Open WebSockets that stay silent, some before, so that what is made once is made."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files[1], files[1]))
    request = (
        b"GET /all HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    opened: list[socket.socket] = []

    def open_some(number: int) -> None:
        for _ in range(number):
            one = socket.create_connection(("127.0.0.1", port))
            one.sendall(request)
            if not one.recv(4096).startswith(b"HTTP/1.1 101"):
                raise SystemExit("rooms: a WebSocket was refused")
            opened.append(one)

    open_some(100)
    before = launch.pss_kib(launch.tree(server))
    open_some(count)
    grown = launch.pss_kib(launch.tree(server)) - before
    for one in opened:
        one.close()
    return {"idle": count, "kib_per_websocket": round(grown / count, 2)}


def main() -> None:
    """Measure once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--rate", type=float, default=0.0, help="messages per second; 0: as many as pass"
    )
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--senders", type=int, default=1)
    parser.add_argument("--pipeline", type=int, default=8)
    parser.add_argument(
        "--without-engine", action="store_true", help="workers linked by the supervisor"
    )
    parser.add_argument("--idle", type=int, default=0, help="memory of so many WebSockets instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "measured.py").write_text(APP)
        redis = redis_server()
        url = "" if options.without_engine else redis.url
        server = subprocess.Popen(
            [sys.executable, "-m", "citius", "serve", "measured:app", "--port", "0", "--workers",
             str(options.nodes), "--no-access-log"],
            cwd=directory,
            env={**os.environ, "CLUSTER": url},
            stderr=subprocess.PIPE,
        )  # fmt: skip
        assert server.stderr is not None
        said = b""
        while not (found := re.search(rb"serves on http://\S+:(\d+)", said)):
            said += server.stderr.read1(4096)
        try:
            port = int(found[1])
            report = (
                idle(port, options.idle, server.pid)
                if options.idle
                else _load(port, options, server.pid, redis.pid)
            )
        finally:
            server.terminate()
            server.wait(20)
            redis.remove()
    print(json.dumps(report))


def _load(port: int, options: argparse.Namespace, server: int, redis: int) -> dict[str, object]:
    command = [
        str(ROOT / "lab/citius_lab/bin/citius-load"), f"ws://127.0.0.1:{port}/all", "--broadcast", "-c",
        str(options.clients), "--senders", str(options.senders), "--warmup", "1s", "-d",
        f"{options.seconds}s", "-b",
        "x" * options.bytes, "--json", "-",
    ]  # fmt: skip
    command += ["--rate", str(options.rate)] if options.rate else ["-p", str(options.pipeline)]
    before = cpu_s(server), cpu_s(redis)
    usage = os.times()
    done = subprocess.run(command, capture_output=True, text=True)
    after = os.times()
    if done.returncode:
        raise SystemExit(done.stderr or done.stdout)
    record = json.loads(done.stdout)
    clients_s = (
        after.children_user + after.children_system - usage.children_user - usage.children_system
    )
    spent = {
        "nodes": cpu_s(server) - before[0],
        "redis": cpu_s(redis) - before[1],
        "clients": clients_s,
    }
    return {
        "deliveries_per_s": round(record["requests_per_s"]),
        "messages_per_s": round(record["sent_per_s"], 1),
        "unanswered": record["unanswered"],
        "latency_ms": {
            name: round(record["latency_us"][name] / 1000, 2) for name in ("p50", "p99", "max")
        },
        "cpu_us_per_delivery": {
            name: round(1e6 * one / record["completed"], 2) for name, one in spent.items()
        },
        "connections": record["connections"]["open_at_end"],
    }


if __name__ == "__main__":
    main()
