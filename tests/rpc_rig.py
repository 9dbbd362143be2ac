"""Procedures of every kind, and a peer of an RPC port."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Any

import msgpack
from rig import TIMEOUT_S, Peer, Server, application

APP = application("procedures_app")


def serve_procedures(directory: Path, *arguments: str, address: str = "127.0.0.1:0") -> Server:
    """A server of the application above."""
    command = [str(APP), "--port", "0", "--rpc", address, *arguments]
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
