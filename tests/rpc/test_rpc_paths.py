"""I29: a service that is mounted natively responds as its library's ASGI application does, whatever comes.

The same requests go to both: proper ones, and ones that are changed at random (`make connect-conformance`
installs what is needed).
"""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rig
from rig import Server, application

TOOLS = Path(__file__).parents[2] / ".tools"
SERVICE = "/connectrpc.conformance.v1.ConformanceService"
SEEDS = range(700)

pytestmark = pytest.mark.skipif(
    not (TOOLS / "connect/ready").exists(), reason="`make .tools/connect/ready` installs connectrpc"
)
Response = tuple[int, list[tuple[str, str]], Any, list[tuple[str, str]]]

HEADERS = {"responseHeaders": [{"name": "x-a", "value": ["1", "2"]}]}
TRAILERS = {"responseTrailers": [{"name": "x-t", "value": ["nö"]}]}
FAILURE = {"error": {"code": "CODE_NOT_FOUND", "message": "nö such\nthing"}}
UNARY = [
    {},
    {"responseDefinition": {"responseData": "aGVsbG8="}},
    {"responseDefinition": {"responseData": "aGVsbG8=", **HEADERS, **TRAILERS}},
    {"responseDefinition": {**HEADERS, **TRAILERS, **FAILURE}},
    {"requestData": "YWFh" * 300},
]
STREAM = [
    {},
    {"responseDefinition": {"responseData": ["YQ==", "Yg==", "Yw=="], **HEADERS, **TRAILERS}},
    {"responseDefinition": {"responseData": ["YQ=="], **FAILURE, **TRAILERS}},
    {"responseDefinition": {**FAILURE}},
]
BIDI = [*STREAM, {**STREAM[1], "fullDuplex": True}, {**STREAM[2], "fullDuplex": True}]
METHODS = {
    "Unary": ("UnaryRequest", UNARY),
    "IdempotentUnary": ("IdempotentUnaryRequest", UNARY),
    "Unimplemented": ("UnimplementedRequest", [{}]),
    "ClientStream": ("ClientStreamRequest", UNARY),
    "ServerStream": ("ServerStreamRequest", STREAM),
    "BidiStream": ("BidiStreamRequest", BIDI),
    "None": ("UnaryRequest", UNARY),
}
FIELDS = [
    ("accept-encoding", ["gzip", "br", "zstd, gzip", "gzip;q=1, br", "nope", "identity", ""]),
    ("grpc-accept-encoding", ["gzip", "identity, deflate, gzip", "nope"]),
    ("connect-accept-encoding", ["gzip", "br", "nope"]),
    ("content-encoding", ["gzip", "nope", "identity", ""]),
    ("grpc-encoding", ["gzip", "nope", "identity", ""]),
    ("connect-content-encoding", ["gzip", "nope", "identity"]),
    ("connect-protocol-version", ["1", "2"]),
    ("connect-timeout-ms", ["5000", "x", "-1", "99999999999", ""]),
    ("grpc-timeout", ["5S", "5000000u", "5", "S", "123456789S", "5x", "+5S", ""]),
    ("x-fail", ["value", "cancelled", "timeout"]),
    ("x-late", ["1"]),
    ("x-pause", ["1"]),
    ("x-wrong", ["1"]),
    ("x-refused", ["start", "end"]),
    ("x-text", ["nö"]),
]
KINDS = [
    "application/{}",
    "application/connect+{}",
    "application/grpc+{}",
    "application/grpc-web+{}",
]
ODD_KINDS = [
    "application/grpc", "application/grpc-web", "application/json; charset=utf-8", "Application/JSON",
    "text/plain",
    "application/grpc+nope", "application/connect+nope", "application/nope", "application/grpc+JSON", "",
]  # fmt: skip


@pytest.fixture(scope="module", params=["", "1"], ids=["plain", "intercepted"])
def servers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, Server]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rig, "PYTHON", str(TOOLS / "connect/environment/bin/python"))
        env = {"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
        if request.param:
            env["INTERCEPTED"] = request.param
        with rig.serving(tmp_path_factory.mktemp("paths"), "") as serve:
            path = application("rpc_paths_app")
            yield tuple(serve(path, env=env | {"MOUNT": mount}) for mount in ("native", "library"))


def sent(server: Server, method: str, path: str, fields: dict[str, str], body: bytes) -> bytes:
    """All that the server sends."""
    head = {"host": "test", "connection": "close", "content-length": str(len(body)), **fields}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    with server.connect() as peer:
        peer.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
        return peer.read_to_end()


def read(raw: bytes) -> Response:
    """Status, fields, body and trailers, without what says nothing or differs each time."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status, fields = head.split(b" ")[1], fields_of(head.partition(b"\r\n")[2])
    named = dict(fields)
    trailers: list[tuple[str, str]] = []
    body = rest
    if named.get("transfer-encoding") == "chunked":
        body = b""
        while True:
            size, _, rest = rest.partition(b"\r\n")
            n = int(size, 16)
            if n == 0:
                trailers = fields_of(rest)
                break
            body, rest = body + rest[:n], rest[n + 2 :]
    kept = [
        (name, value) for name, value in fields
        if name not in ("date", "transfer-encoding", "content-length", "connection", "server")
        and not (name.endswith("-encoding") and value == "identity")
    ]  # fmt: skip
    return int(status), sorted(kept), content_of(body, named), sorted(trailers)


def fields_of(section: bytes) -> list[tuple[str, str]]:
    lines = section.decode("latin-1").rstrip("\r\n").split("\r\n")
    pairs = [line.partition(":") for line in lines if line]
    return [(name.lower(), value.strip()) for name, _, value in pairs]


def content_of(body: bytes, fields: dict[str, str]) -> Any:
    """A body, or its envelopes, without gzip, which notes the time."""
    kind = fields.get("content-type", "")
    if fields.get("content-encoding") == "gzip":
        return gzip.decompress(body)
    if not re.match(r"application/(connect\+|grpc)", kind):
        return body
    is_gzip = "gzip" in (fields.get("grpc-encoding"), fields.get("connect-content-encoding"))
    envelopes = []
    while body:
        flags, size = body[0], int.from_bytes(body[1:5], "big")
        data, body = body[5 : 5 + size], body[5 + size :]
        envelopes.append((flags, gzip.decompress(data) if flags & 1 and is_gzip else data))
    return envelopes


def envelope(data: bytes, flags: int = 0) -> bytes:
    return bytes((flags,)) + len(data).to_bytes(4, "big") + data


class Asked:
    """A request, proper or changed at random."""

    def __init__(self, choose: random.Random, binary: Callable[[str, Any], bytes]) -> None:
        self.name = choose.choice([*METHODS, "Unary", "Unary", "ServerStream"])
        cls, messages = METHODS[self.name]
        codec = choose.choice(["json", "proto"])
        is_unary = self.name in ("Unary", "IdempotentUnary", "Unimplemented", "None")
        fitting = [kind for kind in KINDS if (kind == KINDS[0]) == is_unary or "grpc" in kind]
        kind = choose.choice(fitting).format(codec)
        self.method = "POST"
        self.fields = {"content-type": kind}
        for name, values in choose.sample(FIELDS, choose.choice([0, 0, 1, 1, 2])):
            self.fields[name] = choose.choice(values)
        n = choose.choice([1, 1, 1, 0, 2, 3]) if kind != f"application/{codec}" else 1
        chosen = [choose.choice(messages) for _ in range(n)]
        encode = binary if codec == "proto" else lambda _, one: json.dumps(one).encode()
        parts = [encode(cls, one) for one in chosen]
        if kind == f"application/{codec}":
            is_gzip = self.fields.get("content-encoding") == "gzip"
            self.body = gzip.compress(parts[0]) if is_gzip else parts[0]
        else:
            is_gzip = "gzip" in (
                self.fields.get("grpc-encoding"),
                self.fields.get("connect-content-encoding"),
            )
            flags = int(is_gzip and choose.random() < 0.8)
            self.body = b"".join(
                envelope(gzip.compress(one) if flags else one, flags) for one in parts
            )
        if choose.random() < 0.3:
            self._spoil(choose)

    def _spoil(self, choose: random.Random) -> None:
        body = bytearray(self.body)
        match choose.randrange(8):
            case 0:
                body = body[: choose.randrange(len(body) + 1)]
            case 1 if body:
                body[choose.randrange(len(body))] ^= 1 << choose.randrange(8)
            case 2 if body:
                body[0] = choose.choice([1, 2, 3, 0x80, 0xFF])
            case 3:
                body += choose.randbytes(choose.randrange(1, 9))
            case 4:
                body = bytearray(envelope(b"\n" * choose.choice([1990, 2000, 2001, 4000])))
            case 5:
                self.fields["content-type"] = choose.choice(ODD_KINDS)
            case 6:
                self.method = choose.choice(["GET", "PUT", "OPTIONS"])
            case _:
                del self.fields["content-type"]
        self.body = bytes(body)

    def __str__(self) -> str:
        return f"{self.method} {self.name} {self.fields} {self.body!r}"


def test_both_ways_give_the_same_response(servers: tuple[Server, Server]) -> None:
    native, library = servers
    known: dict[tuple[str, str], bytes] = {}

    def binary(cls: str, message: Any) -> bytes:
        key = cls, json.dumps(message)
        if key not in known:
            with native.connect() as peer:
                known[key] = peer.request("POST", f"/binary/{cls}", key[1].encode()).body
        return known[key]

    seen: set[tuple[int, str]] = set()
    for seed in SEEDS:
        asked = Asked(random.Random(seed), binary)
        path = f"{SERVICE}/{asked.name}"
        ours, theirs = (
            read(sent(server, asked.method, path, asked.fields, asked.body)) for server in servers
        )
        assert ours == theirs, f"seed {seed}: {asked}"
        seen.add((ours[0], dict(ours[3]).get("grpc-status", "")))
    # What was compared was not all refused.
    assert {(200, "0"), (200, "5"), (200, ""), (404, ""), (415, ""), (405, "")} <= seen
    assert {"native", "library"} == {app_of(native), app_of(library)}


def app_of(server: Server) -> str:
    """Which application it is, by what it logs of a failure."""
    sent(
        server,
        "POST",
        f"{SERVICE}/Unary",
        {"content-type": "application/json", "x-fail": "value"},
        b"{}",
    )
    rig.wait_for(lambda: "ValueError: wr" in server.err, "the failure in the log")
    return "library" if "failed after its response" in server.err else "native"


PACKED = base64.urlsafe_b64encode(gzip.compress(b"{}", mtime=0)).decode().rstrip("=")
QUERIES = [
    "encoding=json&message=%7B%7D", "encoding=json&message=e30&base64=1", "encoding=json&message=*&base64=1",
    "encoding=json", "encoding=nope&message=%7B%7D", "message=%7B%7D", "encoding=proto&message=&connect=v1",
    "encoding=json&message=%7B%7D&compression=nope", "encoding=json&message=%7B",
    f"encoding=json&base64=1&compression=gzip&message={PACKED}",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_questions_by_get(servers: tuple[Server, Server], query: str) -> None:
    ours, theirs = (
        read(
            sent(
                server,
                "GET",
                f"{SERVICE}/IdempotentUnary?{query}",
                {"accept-encoding": "gzip"},
                b"",
            )
        )
        for server in servers
    )
    assert ours == theirs


@pytest.mark.parametrize(
    ("method", "wait"),
    [("Unary", "1"), ("Unary", "ignored"), ("Unary", "replaced"), ("ServerStream", "1")],
)
@pytest.mark.parametrize("kind", [kind.format("json") for kind in KINDS])
def test_deadlines(servers: tuple[Server, Server], method: str, wait: str, kind: str) -> None:
    if method == "ServerStream" and kind == "application/json":
        kind = "application/connect+json"
    if method == "Unary" and kind == "application/connect+json":
        return
    fields = {
        "content-type": kind, "x-wait": wait,
        ("grpc-timeout" if "grpc" in kind else "connect-timeout-ms"): "50m" if "grpc" in kind else "50",
    }  # fmt: skip
    message = json.dumps(STREAM[1] if method == "ServerStream" else {}).encode()
    body = message if kind == "application/json" else envelope(message)
    ours, theirs = (
        read(sent(server, "POST", f"{SERVICE}/{method}", fields, body)) for server in servers
    )
    assert ours == theirs
    if wait == "ignored":
        assert ("x-ignored", "1") in ours[1]
        return
    told = json.dumps(
        [ours[2] if isinstance(ours[2], bytes) else ours[2][-1:], ours[3]], default=str
    )
    name, number = ("aborted", "10") if wait == "replaced" else ("deadline_exceeded", "4")
    assert name in told or f'"{number}"' in told or f"grpc-status: {number}" in told


@pytest.mark.parametrize("kind", ["application/json", "application/grpc+json"])
def test_a_deadline_counts_from_the_start_of_the_call(
    servers: tuple[Server, Server], kind: str
) -> None:
    """And not from the moment at which the service begins to wait, which is after it."""
    name, left = ("grpc-timeout", "50m") if "grpc" in kind else ("connect-timeout-ms", "50")
    body = envelope(b"{}") if "grpc" in kind else b"{}"
    fields = {"content-type": kind, "x-busy": "1", name: left}
    ours, theirs = (
        read(sent(server, "POST", f"{SERVICE}/Unary", fields, body)) for server in servers
    )
    assert ours == theirs
    assert ("grpc-status", "4") in ours[3] or b"deadline_exceeded" in ours[2]
