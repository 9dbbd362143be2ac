"""Clients of what nodes share beside rooms, for as long as a fault lasts, and what may have come.

Each client asks all nodes in turns: a limit, a value of the cache, a session, the present members, a lock.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field

PATHS = ("/limited", "/cached/value", "/count", "/online", "/once")
# What each may respond, whatever the engine does. A session is never pretended: 503.
ALLOWED = {
    "/limited": {200, 429},
    "/cached/value": {200},
    "/count": {200, 503},
    "/online": {200},
    "/once": {200},
}
LONGEST_S = {"/once": 22.0}
"""The handler waits for the lock for 20 s; the others wait for the engine half a second at most."""
OTHERS_S = 4.0


@dataclass
class Reply:
    status: int
    fields: dict[str, str]
    body: str
    seconds: float
    is_of_a_dead_node: bool
    """Its node was killed or stood still meanwhile: it may be late, and have lost its lock."""


@dataclass
class SeamClient:
    """Asks one path of all nodes, one after the other; one session."""

    path: str
    addresses: list[str]
    is_alive: Callable[[int], bool]
    """Whether a node can be expected to respond."""
    replies: list[Reply] = field(default_factory=list[Reply])
    failed: list[str] = field(default_factory=list[str])
    cookie: str = ""
    is_over: bool = False

    async def run(self) -> None:
        turn = 0
        while not self.is_over:
            turn += 1
            await self.ask(turn % len(self.addresses))
            await asyncio.sleep(0.02)  # its pace

    async def ask(self, number: int) -> Reply | None:
        """Ask a node once; nothing if it was not alive."""
        loop = asyncio.get_running_loop()
        was_alive, begun = self.is_alive(number), loop.time()
        try:
            async with asyncio.timeout(30):
                said = await self._ask(self.addresses[number])
        except (OSError, asyncio.IncompleteReadError) as error:
            if was_alive and self.is_alive(number):
                self.failed.append(f"node {number}: {error!r}")
            return None
        head, _, body = said.partition(b"\r\n\r\n")
        if not head:
            if was_alive and self.is_alive(number):
                self.failed.append(f"node {number}: closed without a response")
            return None
        first, *lines = head.decode().split("\r\n")
        fields = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        if "set-cookie" in fields:
            self.cookie = fields["set-cookie"].partition(";")[0]
        is_dead = not (was_alive and self.is_alive(number))
        status = int(first.split()[1])
        reply = Reply(status, fields, body.decode(), loop.time() - begun, is_dead)
        self.replies.append(reply)
        return reply

    async def _ask(self, address: str) -> bytes:
        reader, writer = await asyncio.open_connection(address, 8000)
        try:
            cookie = f"Cookie: {self.cookie}\r\n" if self.cookie else ""
            request = f"GET {self.path} HTTP/1.1\r\nHost: a\r\n{cookie}Connection: close\r\n\r\n"
            writer.write(request.encode())
            return await reader.read()
        finally:
            writer.close()


def check_seams(clients: list[SeamClient], *, is_emptied: bool) -> dict[str, int]:
    """Check all that came: nothing that may not, nothing late, counts and fences that grow."""
    for client in clients:
        assert not client.failed, client.failed[:5]
        for reply in client.replies:
            if reply.is_of_a_dead_node:
                continue
            said = f"{client.path}: {reply.status} after {reply.seconds:.1f} s: {reply.body[:200]}"
            assert reply.status in ALLOWED[client.path], said
            assert reply.seconds < LONGEST_S.get(client.path, OTHERS_S), said
            assert reply.status != 503 or "retry-after" in reply.fields, said
    counts = [int(reply.body) for client in clients if client.path == "/count"
              for reply in client.replies if reply.status == 200]  # fmt: skip
    drops = sum(later <= before for before, later in itertools.pairwise(counts))
    assert drops <= int(is_emptied), f"a session went back {drops} times: {counts}"
    fences = [int(reply.body) for client in clients if client.path == "/once"
              for reply in client.replies if reply.status == 200]  # fmt: skip
    assert fences == sorted(set(fences)), f"fences do not grow: {fences}"
    return {client.path: len(client.replies) for client in clients}


async def all_is_well(
    client: Callable[[str], SeamClient], nodes: list[int], members: list[str]
) -> str:
    """What is not as it should be when a fault is over; empty if all is."""
    values: set[str] = set()
    counting = client("/count")
    for turn, number in enumerate(nodes, 1):
        reply = await counting.ask(number)
        if reply is None or (reply.status, reply.body) != (200, str(turn)):
            return f"/count of node {number}: {reply}"
        reply = await client("/cached/value").ask(number)
        if reply is None or reply.status != 200:
            return f"/cached of node {number}: {reply}"
        values.add(reply.body)
        reply = await client("/online").ask(number)
        if reply is None or json.loads(reply.body) != members:
            return f"/online of node {number}: {reply}"
        reply = await client("/once").ask(number)
        if reply is None or reply.status != 200:
            return f"/once of node {number}: {reply}"
        reply = await client("/limited").ask(number)
        if reply is None or reply.status not in (200, 429):
            return f"/limited of node {number}: {reply}"
    return "" if len(values) == 1 else f"{len(values)} values of one key: {values}"
