"""Procedures of every kind, and a peer of an RPC port."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import msgpack
from rig import TIMEOUT_S, Peer, Server

APP = """
import asyncio, math, os, threading, time
import msgspec
from citius import App, Conflict
from citius.rpc import RpcError
from typing import Annotated

app = App()

class User(msgspec.Struct):
    id: int
    name: str = "nobody"

class UnknownUser(RpcError):
    pass

app.state.noted = []
app.state.cancelled = []
app.state.called = 0

@app.rpc
@app.get("/")
def hello() -> str:
    return "Hello World!"

@app.rpc
@app.get("/sum/{a:int}/{b:int}")
def sum(a: int, b: int) -> int:
    return a + b

@app.rpc("users.get")
async def get_user(id: Annotated[int, msgspec.Meta(ge=0)], *, name: str = "nobody") -> User:
    await asyncio.sleep(0)
    if id > 100:
        raise UnknownUser(f"there is no user {id}", data={"id": id})
    return User(id, name)

@app.rpc
def echo(value=None):
    return value

@app.rpc
def total(*numbers: float) -> float:
    return math.fsum(numbers)

@app.rpc
async def sleep(seconds: float, answer: str = "slept") -> str:
    app.state.called += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        app.state.cancelled.append(answer)
        raise
    return answer

@app.rpc(blocking=True)
def block(seconds: float) -> str:
    time.sleep(seconds)
    return threading.current_thread().name

@app.rpc
def note(text: str) -> None:
    app.state.noted.append(text)

@app.rpc
async def note_later(seconds: float, text: str) -> str:
    await asyncio.sleep(seconds)
    app.state.noted.append(text)
    return text

@app.rpc(blocking=True)
def note_in_a_thread(seconds: float, text: str) -> str:
    time.sleep(seconds)
    app.state.noted.append(text)
    return text

@app.rpc
def seen() -> dict[str, object]:
    return {"noted": app.state.noted, "cancelled": app.state.cancelled, "called": app.state.called}

@app.rpc
def fail() -> None:
    raise ValueError("the password is 1234")

@app.rpc
def refuse() -> None:
    raise Conflict("taken already")

@app.rpc
def odd():
    return object()

@app.rpc
def ignore(value: bytes, size: int = 0) -> bytes:
    return b"x" * size

@app.rpc
def pid() -> int:
    return os.getpid()

@app.rpc(deadline_s=0.05)
async def hasty() -> None:
    try:
        await asyncio.sleep(30)
    finally:
        app.state.cancelled.append("hasty")
"""


def serve_procedures(directory: Path, *arguments: str, address: str = "127.0.0.1:0") -> Server:
    """A server of the application above."""
    (directory / "main.py").write_text(APP)
    command = ["main.py", "--port", "0", "--rpc", address, *arguments]
    server = Server(command, {}, directory)
    try:
        return server.wait_ready()
    except BaseException:
        server.kill()
        raise


def rpc_address(server: Server) -> str:
    """Where procedures of a server are called, as a client wants it."""
    found = re.search(r"rpc://(\S+:\d+)|rpc\+((?:tls://)?(?:unix:\S+|\S+:\d+))", server.err)
    assert found, server.err
    return found[1] or found[2]


class RpcPeer(Peer):
    """A client of MessagePack-RPC that decides about every byte; msgpack is not ours."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._unpacker = msgpack.Unpacker()

    def ask(self, msgid: int, method: str, *params: Any) -> None:
        """Send a request."""
        self.send(msgpack.packb([0, msgid, method, params]))

    def tell(self, method: str, *params: Any) -> None:
        """Send a notification."""
        self.send(msgpack.packb([2, method, params]))

    def hear(self) -> Any:
        """The next message."""
        while True:
            for message in self._unpacker:
                return message
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError("the server closed the connection")
            self._unpacker.feed(piece)

    def call(self, method: str, *params: Any) -> Any:
        """``(error, result)`` of a call."""
        self.ask(7, method, *params)
        kind, msgid, error, result = self.hear()
        assert (kind, msgid) == (1, 7)
        return error, result


def connect_rpc(server: Server) -> RpcPeer:
    """A connection to the RPC port."""
    address = rpc_address(server).removeprefix("tls://")
    if address.startswith("unix:"):
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        made.connect(address.removeprefix("unix:"))
    else:
        host, _, port = address.rpartition(":")
        made = socket.create_connection((host, int(port)))
    made.settimeout(TIMEOUT_S)
    return RpcPeer(made)
