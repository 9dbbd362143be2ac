"""How a server is asked: pace, transport and stop as independent values, and what is run with them.

A ``Load`` is one way of asking, a ``Series`` one column group of an experiment: a load, the cases
it asks for, and how many workers answer. Nothing here knows a contestant or measures anything; the
words for the load generator are in ``drive``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from citius_lab.definitions import wires

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Load:
    """One way of asking.

    Attributes:
        pace: ``closed`` (the next request when the answer is there), ``constant`` or ``poisson``
            (a rate), ``users`` (each one request on one connection, arriving over ``ramp_s``).
        connections: 0 means the case's own number.
        pipeline: Requests under way at once on each connection.
        keep_alive: False opens a connection for every request; over TLS each is of a new client, which has no
            session to resume.
        http: Version spoken, ``1.1`` or ``2``.
        tls: Whether it is spoken over TLS.
        rpc: Whether procedures are called instead, by MessagePack-RPC.
        quic: Whether each call has a stream of QUIC, in place of one connection of TCP for all.
        ws: Whether messages of a WebSocket are sent instead.
        wt: Whether messages of WebTransport sessions are sent instead, each on a stream or in a datagram.
        senders: How many connections send, where the server passes each message to all of them; 0 where it
            sends a message back to its sender alone.
        streams: Requests, calls or messages under way at once on each connection, of protocols for which that
            is no pipelining.
        requests_per_connection: Another connection takes the place of each that has served so many; 0 for no
            limit. Over TLS the new one resumes a session.
        rate: Requests per second of an open pace.
        fraction: The rate as a share of what the same process did in the series ``of``.
        requests: Stops after so many.
        window_min_s: No window is shorter, whatever time there is: where requests take that long.
        rtt_ms: Round-trip time that a relay adds between generator and server.
        loss: Share of the packets that the relay drops, in both directions. It needs a TUN device,
            and so root.
        duration_s: The article's length; windows are never longer, and shorter where the time
            is short. ``None`` leaves the length to the time that there is.
    """

    pace: Literal["closed", "constant", "poisson", "users"] = "closed"
    connections: int = 0
    threads: int = 1
    pipeline: int = 1
    keep_alive: bool = True
    http: Literal["1.1", "2", "3"] = "1.1"
    tls: bool = False
    rpc: bool = False
    quic: bool = False
    ws: bool = False
    wt: Literal["", "streams", "datagrams"] = ""
    senders: int = 0
    streams: int = 1
    requests_per_connection: int = 0
    rate: float | None = None
    fraction: float | None = None
    of: str | None = None
    users: int | None = None
    ramp_s: float | None = None
    requests: int | None = None
    duration_s: float | None = None
    window_min_s: float = 0.0
    rtt_ms: float = 0.0
    loss: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether requests are due at instants that do not depend on the answers."""
        return self.pace != "closed"

    @property
    def is_timed(self) -> bool:
        """Whether a span of time ends it, which may then follow from the time there is."""
        return self.requests is None and self.users is None

    @property
    def wire(self) -> str:
        """What is spoken, as ``wires`` names it."""
        if self.rpc:
            return wires.RPC_QUIC if self.quic else wires.RPC
        if self.ws:
            return wires.WS
        if self.wt:
            return wires.WT_STREAMS if self.wt == "streams" else wires.WT_DATAGRAMS
        if self.http == "3":
            return wires.H3
        if self.http == "2":
            return wires.H2 if self.tls else wires.H2C
        return wires.HTTPS if self.tls else wires.HTTP1

    @property
    def has_messages(self) -> bool:
        """Whether messages are sent that come back, in place of requests."""
        return self.ws or self.wt != ""

    @property
    def depth(self) -> int:
        """Requests under way at once on each connection, whatever makes that possible."""
        is_multiplexed = self.http in ("2", "3") or self.rpc or self.has_messages
        return self.streams if is_multiplexed else self.pipeline

    def fixed_s(self) -> float:
        """Return how long one run takes whatever time there is; 0 if that decides."""
        if self.users is not None:
            return (self.ramp_s or 0.0) + USERS_END_S
        return COUNT_GUESS_S if self.requests is not None else 0.0

    def text(self) -> str:
        """Return it in the words of a report."""
        if self.pace == "users":
            return f"{self.users} users, one request each, arriving over {self.ramp_s:g} s"
        words = [{"closed": "closed loop"}.get(self.pace, f"{self.pace} rate")]
        if self.fraction is not None:
            words.append(f"at {self.fraction:.0%} of the contestant's own capacity")
        elif self.rate is not None:
            words.append(f"{self.rate:g} requests/s")
        if self.connections:
            words.append(f"{self.connections} connections")
        if self.threads > 1:
            words.append(f"{self.threads} threads")
        if self.wire in WIRE_WORDS:
            words.append(WIRE_WORDS[self.wire])
        if self.streams > 1:
            kind = "calls" if self.rpc else "messages" if self.has_messages else "streams"
            words.append(f"{self.streams} {kind} on each")
        if self.senders:
            words.append(f"{self.senders} of them send, all receive")
        if self.pipeline > 1:
            words.append(f"{self.pipeline} requests in flight on each")
        words += self._connection_words()
        if self.requests is not None:
            words.append(f"{self.requests} requests")
        elif self.duration_s is not None:
            words.append(f"at most {self.duration_s:g} s")
        return ", ".join(words)

    def _connection_words(self) -> list[str]:
        new = "a connection per request" + (", with a full handshake" if self.tls else "")
        words = [] if self.keep_alive else [new]
        if self.requests_per_connection:
            resumed = ", which resumes a session" if self.tls else ""
            words.append(f"a new connection after {self.requests_per_connection} requests{resumed}")
        if self.rtt_ms:
            words.append(f"{self.rtt_ms:g} ms away")
        return [*words, f"{self.loss:.1%} of the packets lost"] if self.loss else words


@dataclass(frozen=True, slots=True)
class Series:
    """What is measured with one load: the cases that stand side by side in a report.

    Attributes:
        id: Unique within its experiment.
        protocol: Which protocol of the contract it follows, ``closed`` for none of them.
        title: The heading, without the experiment's name.
        cases: Ids of cases.
        connections: The load's connections where a case needs others, by case id.
        workers: Server workers; 0 stands for as many as the machine gives the server.
        discard: Runs on a fresh process that do not count.
        runs: Runs that count, on one process.
        beside: The series to show it next to (a pipelined one is never shown alone).
        only_if_failed: The series in which a contestant has to fail before this one is run at all.
        outside: Other load generators that ask the first case of each contestant, after the lab's own.
        is_article: Whether it is the article's own protocol, or what the lab adds to it.
    """

    id: str
    protocol: str
    title: str
    load: Load
    cases: tuple[str, ...]
    connections: dict[str, int] = field(default_factory=dict[str, int])
    workers: int = 1
    discard: int = 0
    runs: int = 1
    beside: str | None = None
    only_if_failed: str | None = None
    outside: tuple[Literal["wrk", "h2load", "ab"], ...] = ()
    is_article: bool = True

    @property
    def is_pipelined(self) -> bool:
        """Whether it belongs into the section that is kept apart."""
        return self.load.pipeline > 1

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data, with the load in words."""
        return {**asdict(self), "load_text": self.load.text(), "is_pipelined": self.is_pipelined}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Series:
        """Read what ``as_record`` wrote."""
        known = {name: record[name] for name in cls.__slots__ if name in record}
        known["load"] = Load(**record["load"])
        for name in ("cases", "outside"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)


WIRE_WORDS = {
    wires.H2C: "HTTP/2 in clear text",
    wires.HTTPS: "HTTP/1.1 over TLS",
    wires.H2: "HTTP/2 over TLS",
    wires.H3: "HTTP/3",
    wires.RPC: "MessagePack-RPC",
    wires.RPC_QUIC: "MessagePack-RPC over QUIC",
    wires.WS: "WebSocket",
    wires.WT_STREAMS: "WebTransport, a stream for each message",
    wires.WT_DATAGRAMS: "WebTransport, a datagram for each message",
}
# The wait for the last answers of users that came in time.
USERS_END_S = 0.5
# What 10 000 requests take on a server of the middle; the clock learns the real cost.
COUNT_GUESS_S = 1.5
