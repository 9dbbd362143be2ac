"""Asks a server single requests and checks the answers, before and after it is measured.

The client here reads responses on its own (``http.client`` parses the header fields), because the
probes need the raw socket: heads cut into pieces, connections used again, requests in flight
together. It is no part of the measurement.
"""

from __future__ import annotations

import socket
import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from http.client import HTTPException, parse_headers
from typing import TYPE_CHECKING

from citius_lab.definitions import wires
from citius_lab.definitions.workloads import Case, Response, WrongResponse, contract
from citius_lab.verify import http2, http3, rpc, rpc_quic, websocket, webtransport

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    Connect = Callable[[], "Connection"]


class Connection:
    """One connection to a server under test.

    Attributes:
        is_over: Whether the last response said that the server closes it (RFC 9112 §9.6).

    Raises:
        OSError: The server does not accept, or breaks off.
        WrongResponse: What comes back is not an HTTP/1.1 response.
    """

    is_over = False

    def __init__(self, port: int, *, timeout_s: float = 10.0, wire: str = wires.HTTP1) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=timeout_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if wires.is_tls(wire):
            self._socket = wires.client_context(wire).wrap_socket(
                self._socket, server_hostname="localhost"
            )
        self._reader = self._socket.makefile("rb")
        self._port = port

    def close(self) -> None:
        """End the connection."""
        self._reader.close()
        self._socket.close()

    def head(self, target: str) -> bytes:
        """Return the bytes of a request for ``target``."""
        return f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n\r\n".encode()

    def send(self, data: bytes) -> None:
        """Send raw bytes."""
        self._socket.sendall(data)

    def ask(self, target: str, case: Case | None = None) -> Response:
        """Send one request and wait for its answer; a case adds its method, fields and body."""
        request = self.head(target) if case is None else self.request(target, case)
        started_at = time.perf_counter()
        self.send(request)
        return self.receive(started_at)

    def request(self, target: str, case: Case) -> bytes:
        """Return the bytes of the request of a case, for ``target``."""
        lines = [f"{case.method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self._port}"]
        lines += [f"{name}: {value}" for name, value in case.headers]
        body = case.body
        if case.is_chunked:
            lines.append("Transfer-Encoding: chunked")
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode() + body

    def receive(self, started_at: float | None = None) -> Response:
        """Read one response to its last byte."""
        started_at = time.perf_counter() if started_at is None else started_at
        try:
            is_kept, status = self._status()
            fields = parse_headers(self._reader)
            is_empty = status in {204, 304}  # RFC 9110 §6.4.1: neither has content
            framing = fields.get("Transfer-Encoding"), fields.get_all("Content-Length", [])
            connection = (fields.get("Connection") or "").lower()
            self.is_over = connection == "close" or not (is_kept or connection == "keep-alive")
            body = b"" if is_empty else self._body(*framing)
        except (HTTPException, ValueError) as error:
            raise WrongResponse(f"not an HTTP response: {error}") from error
        content_type = (fields.get("Content-Type") or "").partition(";")[0].strip().lower()
        return Response(status, content_type, body, time.perf_counter() - started_at)

    def _status(self) -> tuple[bool, int]:
        """Return whether the version keeps connections (RFC 9112 §9.3), and the status."""
        line = self._reader.readline(1024)
        if not line:
            raise WrongResponse("the server closed the connection instead of answering")
        words = line.split(None, 2)
        if len(words) < 2 or words[0] not in (b"HTTP/1.1", b"HTTP/1.0"):
            raise WrongResponse(f"expected a status line, got {line[:60]!r}")
        return words[0] == b"HTTP/1.1", int(words[1])

    def _body(self, transfer_encoding: str | None, lengths: list[str]) -> bytes:
        if transfer_encoding is not None and lengths:
            raise WrongResponse("a response with a transfer coding and a content length")
        if (transfer_encoding or "").lower() == "chunked":
            return self._chunks()
        if not lengths:
            raise WrongResponse("a response without content length that is not chunked")
        if len(set(lengths)) > 1 or not (lengths[0].isascii() and lengths[0].isdecimal()):
            raise WrongResponse(f"expected one number as content length, got {', '.join(lengths)}")
        return self._exactly(int(lengths[0]))

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self._reader.readline(1024).partition(b";")[0], 16):
            body += self._exactly(size)
            self._reader.readline(1024)
        self._reader.readline(1024)
        return body

    def _exactly(self, length: int) -> bytes:
        body = self._reader.read(length)
        if len(body) != length:
            raise WrongResponse(f"expected a body of {length} bytes, got {len(body)}")
        return body


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a server treats a connection; each item holds, or says what was wrong."""

    fragmented: str | None
    reused: str | None
    pipelined: str | None
    unknown_path: str | None

    def faults(self) -> dict[str, str]:
        """Return what was wrong, by item."""
        items = ((name, getattr(self, name)) for name in self.__slots__)
        return {name: fault for name, fault in items if fault is not None}


def connection(
    port: int, *, timeout_s: float = 10.0, wire: str = wires.HTTP1
) -> (
    Connection
    | http2.Connection
    | http3.Connection
    | rpc.Connection
    | rpc_quic.Connection
    | websocket.Connection
    | webtransport.Connection
):
    """Connect to a server that speaks ``wire``.

    Raises:
        OSError: It does not accept.
        WrongResponse: It does not speak that.
    """
    if wire == wires.RPC:
        return rpc.Connection(port, timeout_s=timeout_s)
    if wire == wires.RPC_QUIC:
        return rpc_quic.Connection(port, timeout_s=timeout_s)
    if wire == wires.WS:
        return websocket.Connection(port, timeout_s=timeout_s)
    if wires.is_webtransport(wire):
        is_datagrams = wire == wires.WT_DATAGRAMS
        return webtransport.Connection(port, is_datagrams=is_datagrams, timeout_s=timeout_s)
    if wire == wires.H3:
        return http3.Connection(port, timeout_s=timeout_s)
    if wires.is_http2(wire):
        return http2.Connection(port, timeout_s=timeout_s, wire=wire)
    return Connection(port, timeout_s=timeout_s, wire=wire)


def verify_case(
    port: int,
    case: Case,
    random: random.Random,
    *,
    timeout_s: float = 10.0,
    wire: str = wires.HTTP1,
) -> Response:
    """Ask the measured target and one with random input; return the answer to the former.

    Raises:
        OSError: The connection failed.
        WrongResponse: An answer is wrong.
    """
    with closing(connection(port, timeout_s=timeout_s, wire=wire)) as peer:
        answer = peer.ask(case.target, case)
        case.check(answer)
        target = case.probe(random)
        if target != case.target:
            case.check(peer.ask(target, case), target)
        return answer


def verify_conduct(port: int, cases: list[Case], *, wire: str | None = None) -> Conduct:
    """Try what HTTP/1.1 promises of a connection on the first two cases that take no time.

    Where every case takes its time, nothing but an unknown path is tried.
    """
    connect = partial(Connection, port, wire=wires.HTTP1 if wire is None else wire)
    workloads = contract().workloads
    quick = [case for case in cases if workloads[case.workload].is_quick]
    if not quick:
        return Conduct(None, None, None, _fault(_unknown_path, connect))
    first, last = quick[0], quick[min(1, len(quick) - 1)]
    return Conduct(
        fragmented=_fault(_fragmented, connect, first),
        reused=_fault(_reused, connect, first),
        pipelined=_fault(_pipelined, connect, first, last),
        unknown_path=_fault(_unknown_path, connect),
    )


def _fault(probe: object, connect: Connect, *cases: Case) -> str | None:
    assert callable(probe)
    try:
        probe(connect, *cases)
    except (OSError, WrongResponse) as error:
        return str(error) or type(error).__name__
    return None


def _fragmented(connect: Connect, case: Case) -> None:
    with closing(connect()) as connection:
        head = connection.head(case.target)
        for cut in (slice(0, 3), slice(3, 17), slice(17, len(head) - 2)):
            connection.send(head[cut])
            time.sleep(PIECE_S)
        connection.send(head[-2:])
        case.check(connection.receive())


def _reused(connect: Connect, case: Case) -> None:
    with closing(connect()) as connection:
        for _ in range(3):
            case.check(connection.ask(case.target))


def _pipelined(connect: Connect, first: Case, last: Case) -> None:
    """Send 24 requests in one piece, all alike but the last: answers must keep the order."""
    with closing(connect()) as connection:
        connection.send(connection.head(first.target) * 23 + connection.head(last.target))
        for _ in range(23):
            first.check(connection.receive())
        last.check(connection.receive())


def _unknown_path(connect: Connect) -> None:
    with closing(connect()) as connection:
        answer = connection.ask("/no-such-page")
        if answer.status != 404:
            raise WrongResponse(f"unknown path: expected status 404, got {answer.status}")


# Long enough for each piece to be a read of its own on the other side.
PIECE_S = 0.005
