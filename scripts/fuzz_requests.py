"""Sends random requests to typed handlers: none may make a 5xx or a traceback.

The applications are tests/applications/fuzzed_app.py (all sources, types of msgspec and pydantic),
fuzzed_calls_app.py (Connect, MCP, runs, uploads, middleware) and those of `citius new` and `citius new --db`.
Bodies are JSON, MessagePack, forms and multipart forms, and mutations of these. The same seed makes the same
requests. A failure prints what was sent.

    scripts/fuzz_requests.py --requests 100000 --seed 1
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import random
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import msgspec
from citius.testing import Client
from citius.testing.postgres import NoPostgres, database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from citius import App

ROOT = Path(__file__).parent.parent

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 0.0,
    -0.0, 1.5, 5.0,
    1e300, 1e-320, "", "a", "red", "up", "x" * 30, "\x00", "a\x00b", "\u00e9", "\U0001f600", "\ud7ff",
    "null", "true",
    "on", "NaN", "-inf", "1e999", "9" * 30, "253402300800", "-62135596801", "1e30", "2024-01-01",
    "2024-02-30",
    "2024-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59",
    "2024-01-01T24:00:00+99:99",
    "12:00:00", "PT1S", "P999999999999D", "P1Y", "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "0x1", "1_000",
    " 1", "1 ",
    "+1", "strict", "loose", "http://[::1", "[1]", "{}", [], {}, [[]], {"": ""}, [None], ["a", 1],
]  # fmt: skip

JSON_TEXTS: list[bytes] = [
    b"1e999", b"-1e999", b"NaN", b"Infinity", b"-Infinity", b"9" * 5000, b"1." + b"0" * 400 + b"1",
    b'"\\ud800"',
    b'"\xff"', b'"\\u0000"', b"[" * 3000, b'{"a":' * 3000, b"01", b"1,", b"{]", b"", b"\xef\xbb\xbf1", b"nul",
]  # fmt: skip

MSGPACK_TEXTS: list[bytes] = [
    b"\xc1", b"\xa1\xff", b"\x91" * 3000, b"\x81\x90\x01", b"\x81\x80\x01", b"\xdf\xff\xff\xff\xff",
    b"\xdd\xff\xff\xff\xff", b"\xd6\xff\xff\xff\xff\xff", b"\xd7\xff" + b"\xff" * 8,
    b"\xc7\x0c\xff" + b"\xff" * 12,
    b"\xc7\x0c\xff\x00\x00\x00\x00\x7f" + b"\xff" * 7, b"\xc7\x03\x05abc", b"\xcb\x7f\xf0" + b"\x00" * 6,
    b"\xcb\x7f\xf8" + b"\x00" * 6, b"\xcf" + b"\xff" * 8, b"", b"\x01\x01",
]  # fmt: skip

BODIES: list[Any] = [
    {"name": "a", "price": 1.5, "count": 2, "color": "red", "inner": {"day": "2024-01-01"}, "tags": ["x"]},
    {"name": "a", "at": "2024-01-01T00:00:00Z", "price": "1.5", "ratio": 0.5, "url": "http://x",
    "tags": ["x"]},
    {"type": "strict", "id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301", "amount": "1.5"},
    {"type": "loose", "span": "PT1S", "time": "12:00:00"}, {"key": 1, "values": [1, "a"]},
    {"a": 1, "b": [{"a": 2, "b": []}]}, {"1": "2024-01-01T00:00:00Z"},
]  # fmt: skip
"""Values that handlers take; one part is replaced."""

NAMES = [
    "v", "name", "price", "count", "color", "inner", "tags", "more", "id", "amount", "span", "time", "at",
    "ratio",
    "url", "key", "values", "a", "b", "type", "limit", "since", "ids", "order", "day", "data", "offset", "",
]  # fmt: skip

MEDIA_TYPES = [
    "application/json", "application/msgpack", "application/x-www-form-urlencoded", "multipart/form-data",
    "text/plain",
    "application/problem+json", "multipart/form-data; boundary=\"", "application/json; charset=utf-16", "x",
]  # fmt: skip

DATES = [
    "Mon, 01 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 0001 00:00:00 +9999999999999999",
    "Mon, 01 Jan 99999 00:00:00 GMT",
    "Mon, 32 Jan 2024 00:00:00 GMT", "0", "Monday, 01-Jan-24 00:00:00 GMT", "Mon Jan  1 00:00:00 2024", "x",
]  # fmt: skip

Sent = tuple[str, str, dict[str, str], bytes]


class Requests:
    """Random requests to the routes of an application."""

    def __init__(self, app: App, seed: str) -> None:
        self._random = random.Random(seed)
        self._routes = [
            (one.method, one.pattern) for one in app.endpoints if one.protocol == "http"
        ]

    def learn(self, location: str | None) -> None:
        """Take note of what a response names."""

    def make(self) -> Sent:
        """A request: method, target, fields and body."""
        rng = self._random
        method, pattern = rng.choice(self._routes)
        target = "/".join(
            quote(self._text(), safe="") if one.startswith("{") else one
            for one in pattern.split("/")
        )
        headers: dict[str, str] = {}
        if rng.random() < 0.7:
            target += "?" + self._query()
        if "header" in pattern or rng.random() < 0.1:
            for name in ("v", *rng.sample(NAMES[:-1], 2)):
                headers[name] = self._field()
        if "cookie" in pattern or rng.random() < 0.1:
            headers["cookie"] = "; ".join(
                f"{name}={self._field()}" for name in ("v", rng.choice(NAMES))
            )
        if rng.random() < 0.1:
            name = rng.choice(["if-modified-since", "if-none-match", "range", "if-range", "accept"])
            headers[name] = rng.choice(
                [*DATES, "bytes=0-", "bytes=-9999999999999999999", '"x"', "*"]
            )
        body = b""
        if method not in ("GET", "HEAD", "DELETE") or rng.random() < 0.02:
            media_type, body = self._body()
            if media_type:
                headers["content-type"] = media_type
        return method, target, headers, body

    def _value(self, depth: int = 0) -> Any:
        rng = self._random
        chance = rng.random()
        if depth == 0 and chance < 0.4:
            return self._replaced(json.loads(json.dumps(rng.choice(BODIES))))
        if depth > 3 or chance < 0.6:
            return rng.choice(VALUES)
        if chance < 0.85:
            return {name: self._value(depth + 1) for name in rng.sample(NAMES, rng.randint(1, 6))}
        return [self._value(depth + 1) for _ in range(rng.randint(0, 3))]

    def _replaced(self, value: Any) -> Any:
        """A value with another one in the place of a part."""
        rng = self._random
        if isinstance(value, dict) and value and rng.random() < 0.9:
            name = rng.choice(list(value))
            value[name] = self._replaced(value[name])
            return value if rng.random() < 0.8 else [value]
        return self._value(2)

    def _text(self) -> str:
        value = self._random.choice(VALUES)
        if self._random.random() < 0.05:
            return "".join(chr(self._random.randint(1, 0x2FFF)) for _ in range(5))
        return value if isinstance(value, str) else str(value)

    def _field(self) -> str:
        """A text that may be in a header field."""
        text = self._text().encode("latin-1", "replace").decode("latin-1")
        return "".join(one for one in text if one.isprintable() and one.isascii()).strip()

    def _query(self) -> str:
        rng = self._random
        pairs = [("v", self._text())]
        pairs += [(rng.choice(NAMES), self._text()) for _ in range(rng.randint(0, 4))]
        query = urlencode(pairs)
        return self._cut(query.encode()).decode("latin-1") if rng.random() < 0.02 else query

    def _cut(self, data: bytes) -> bytes:
        """The bytes with one mutation, as far as they may be in a request's target."""
        made = bytearray(self._mutated(data))
        return bytes(one for one in made if 0x21 <= one < 0x7F and one not in b"#")

    def _mutated(self, data: bytes) -> bytes:
        rng = self._random
        made = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randint(0, len(made))
            kind = rng.randrange(4)
            if kind == 0:
                del made[at : at + rng.randint(1, 8)]
            elif kind == 1:
                made[at:at] = bytes([rng.randrange(256)])
            elif kind == 2:
                made[at:at] = rng.choice([*JSON_TEXTS[:10], *MSGPACK_TEXTS])
            elif at < len(made):
                made[at] = rng.randrange(256)
        return bytes(made)

    def _body(self) -> tuple[str, bytes]:
        rng = self._random
        kind = rng.randrange(5)
        if kind == 0:
            media_type, body = MEDIA_TYPES[0], self._json()
        elif kind == 1:
            media_type, body = MEDIA_TYPES[1], self._msgpack()
        elif kind == 2:
            media_type, body = MEDIA_TYPES[2], self._query().encode()
        elif kind == 3:
            media_type, body = self._multipart()
        else:
            media_type, body = MEDIA_TYPES[4], self._text().encode()
        if rng.random() < 0.3:
            body = self._mutated(body)
        if rng.random() < 0.05:
            media_type = rng.choice([*MEDIA_TYPES, ""])
        return media_type, body

    def _json(self) -> bytes:
        rng = self._random
        if rng.random() < 0.1:
            return rng.choice(JSON_TEXTS)
        text = json.dumps(self._value(), allow_nan=True).encode()
        if rng.random() < 0.2 and b":" in text:
            # A value that no text of Python's own module would make.
            at = rng.choice([at for at, one in enumerate(text) if one == ord(":")])
            end = min(
                (found for found in (text.find(b",", at), text.find(b"}", at)) if found > 0),
                default=at,
            )
            text = text[: at + 1] + rng.choice(JSON_TEXTS) + text[end:]
        return text

    def _msgpack(self) -> bytes:
        rng = self._random
        if rng.random() < 0.1:
            return rng.choice(MSGPACK_TEXTS)
        value = self._value()
        try:
            packed = msgspec.msgpack.encode(value)
        except OverflowError:
            packed = b"\x81\xa1v\xcf" + b"\xff" * 8
        if rng.random() < 0.2:
            at = rng.randint(0, len(packed))
            packed = packed[:at] + rng.choice(MSGPACK_TEXTS) + packed[at:]
        return packed

    def _multipart(self) -> tuple[str, bytes]:
        rng = self._random
        parts: list[bytes] = []
        for name in ("v", *rng.sample(NAMES, rng.randint(0, 3))):
            file = '; filename="f.txt"' if rng.random() < 0.4 else ""
            charset = "\r\ncontent-type: text/plain; charset=x" if rng.random() < 0.1 else ""
            head = f'content-disposition: form-data; name="{name}"{file}{charset}\r\n\r\n'
            parts.append(b"--b\r\n" + head.encode() + self._text().encode() + b"\r\n")
        return "multipart/form-data; boundary=b", b"".join(parts) + b"--b--\r\n"


PROTOCOL_FIELDS: dict[str, list[str]] = {
    "upload-offset": ["0", "5", "-1", "1e3", "9" * 30, "?1", ""],
    "upload-length": ["0", "5", "2001", "-1", "9" * 30, "x"],
    "upload-complete": ["?1", "?0", "1", "true", "?2", "?1;a=b"],
    "upload-defer-length": ["1", "0", "x"],
    "upload-metadata": [
        "filename d29ybGQ=", "filename d29ybGQ=,is_confidential", "filename !!!!", "a,,b", " ",
        "filename /w==",
        "filename " + "QQ==" * 300, "x d29ybGQ,x d29ybGQ", "filetype Lw==",
    ],
    "upload-checksum": ["sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", "md5 x", "sha1", "sha1 !!!!", "crc32 AAAA", " "],
    "upload-concat": ["partial", "final;/a /b", "x"],
    "upload-draft-interop-version": ["8", "6", "x", "9" * 20],
    "tus-resumable": ["1.0.0", "0.2.2", "x", ""],
    "content-disposition": [
        'attachment; filename="a.txt"', "x; filename*=UTF-8''%ff%fe", "x; filename*=utf-9''a", "filename=",
        "x; filename*=UTF-8''%E2%82", ";;;", "x; filename*=''''",
    ],
    "last-event-id": ["0", "1", "-1", "9" * 30, "x", "1-1", "\u00b2", "end"],
    "idempotency-key": ["a", "x" * 300, " ", "\u00e9"],
    "accept": ["text/event-stream", "application/json", "application/msgpack", "*/*;q=x", ",,,", "text/html"],
    "accept-encoding": ["gzip", "gzip;q=x", "*;q=0", "br;q=1e999"],
    "content-encoding": ["gzip", "identity", "br", "x"],
    "connect-protocol-version": ["1", "2", ""],
    "connect-timeout-ms": ["1000", "0", "-1", "9" * 11, "1e3", "x"],
    "connect-content-encoding": ["gzip", "identity", "x"],
    "mcp-protocol-version": ["2025-06-18", "2026-07-28", "2025-11-25", "1", ""],
    "mcp-session-id": ["x", "a.b.c", "A" * 100, ""],
    "mcp-method": ["tools/call", "x"],
    "mcp-name": ["item", "x"],
    "origin": ["https://a.example", "null", "http://[", "x", "https://a.example:99999"],
    "referer": ["https://a.example/x", "http://[", "x"],
    "host": ["a", "[::1", "a:99999", "a:b", "a b"],
    "access-control-request-method": ["GET", "*", "x y"],
    "access-control-request-headers": ["a, b", ",", "a b"],
    "authorization": [
        "Bearer a", "Bearer", "Basic !!!!", "Basic YQ==", "Basic YTpi", "Basic /////w==", "Bearer a.b.c",
        "Bearer eyJhbGciOiJIUzI1NiJ9.W10.x", "Bearer eyJhbGciOltdfQ.e30.x", "Bearer bnVsbA.bnVsbA.x",
        "Bearer eyJhbGciOiJIUzI1NiIsImNyaXQiOjF9.e30.x", "Digest x", "bEaReR  a",
    ],
    "cookie": ["session=x", "session=a.b.c", "session=A.A", "session=" + "A" * 300, "session=;", "=;"],
    "range": ["bytes=0-", "bytes=-9999999999999999999", "bytes=5-1", "bytes=0-1," * 30, "x=1"],
    "x-key": ["k" * 20, ""],
    "v": ["1", "9" * 30, "x"],
}  # fmt: skip
"""Fields that protocols and middleware read."""

METHODS = [
    "initialize", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
    "resources/read", "resources/templates/list", "resources/subscribe", "resources/unsubscribe",
    "completion/complete", "ping", "logging/setLevel", "notifications/initialized",
    "notifications/cancelled", "server/discover", "x", "", None, "tasks/get",
]  # fmt: skip


class Calls(Requests):
    """Random calls of procedures, of MCP, of runs and uploads, and whatever else reads fields."""

    def __init__(self, app: App, seed: str) -> None:
        super().__init__(app, seed)
        self._names = [one.name for one in app.procedures]
        self._made: list[str] = []

    def learn(self, location: str | None) -> None:
        """Note the URL of a run or an upload."""
        if location is not None:
            self._made = [*self._made[-20:], location]

    def make(self) -> Sent:
        """A request: method, target, fields and body."""
        rng = self._random
        method, target, headers, body = super().make()
        kind = rng.randrange(4)
        if kind == 0:
            method, target, headers, body = (
                "POST",
                "/mcp",
                {"content-type": "application/json"},
                self._call(),
            )
        elif kind == 1 and self._names:
            method, target = "POST", f"/citius.Procedures/{rng.choice(self._names)}"
            body = json.dumps(
                {"v": self._value(), **({"a": 1} if rng.random() < 0.2 else {})}
            ).encode()
            body = self._json() if rng.random() < 0.2 else body
            headers = {"content-type": "application/json"}
            if rng.random() < 0.2:
                headers = {"content-type": "application/connect+json"}
                body = (
                    bytes([rng.choice((0, 0, 0, 1, 2, 255))]) + len(body).to_bytes(4, "big") + body
                )
        elif kind == 2 and self._made and rng.random() < 0.7:
            target, method = (
                rng.choice(self._made),
                rng.choice(["PATCH", "PATCH", "HEAD", "GET", "DELETE"]),
            )
            headers["content-type"] = rng.choice(
                ["application/offset+octet-stream", "application/partial-upload", "x"]
            )
            body = b"x" * rng.choice([0, 1, 5, 2001])
            headers |= (
                {"tus-resumable": "1.0.0"} if rng.random() < 0.5 else {"upload-complete": "?1"}
            )
            headers["upload-offset"] = rng.choice(["0", "5"])
        elif kind == 3 and rng.random() < 0.5:
            method, target, body = (
                "POST",
                rng.choice(["/uploads", "/runs"]),
                b"x" * rng.choice([0, 5]),
            )
            headers = rng.choice(
                [{"tus-resumable": "1.0.0", "upload-length": "5"}, {"upload-complete": "?0"}, {}]
            )
        for name in rng.sample(list(PROTOCOL_FIELDS), rng.randint(0, 5)):
            field = rng.choice(PROTOCOL_FIELDS[name]) if rng.random() < 0.8 else self._field()
            headers[name] = field.encode("latin-1", "replace").decode("latin-1").strip()
        return method, target, headers, self._mutated(body) if rng.random() < 0.1 else body

    def _call(self) -> bytes:
        """A message of MCP."""
        rng = self._random
        if rng.random() < 0.1:
            return self._json()
        name = rng.choice([*self._names, "x"])
        arguments = {"v": self._value()} if rng.random() < 0.8 else self._value()
        uri = rng.choice(
            [f"values://{name}/{quote(self._text(), safe='')}", "values://", "%", self._text()]
        )
        params: dict[str, Any] = {
            "name": name, "arguments": arguments, "uri": uri, "level": "info",
            "protocolVersion": "2025-06-18",
            "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}, "requestId": 1,
            "ref": {"type": rng.choice(["ref/prompt", "ref/resource"]), "name": name, "uri": uri},
            "argument": {"name": "v", "value": ""},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28", "progressToken": 1,
                "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        }  # fmt: skip
        if rng.random() < 0.4:
            params[rng.choice(list(params))] = self._value(1)
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": rng.choice([1, "a", None, 1.5, 2**70]),
            "method": rng.choice(METHODS),
            "params": params,
        }
        if rng.random() < 0.2:
            message[rng.choice(list(message))] = self._value(1)
        return json.dumps([message] if rng.random() < 0.05 else message).encode()


class Watch(logging.Handler):
    """Notes tracebacks in the log."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record that has one."""
        if record.exc_info or "Traceback" in record.getMessage():
            self.found.append(self.format(record))


_NOT_FAILED = (501,)
"""Connect's response to a coding that is not known."""


def campaign(name: str, app: App, count: int, seed: int, watch: Watch) -> int:
    """Send ``count`` requests; gives the number of those that failed."""
    requests = (Calls if name == "calls" else Requests)(app, f"{seed} {name}")
    began, failed = time.monotonic(), 0
    statuses: dict[int, int] = {}
    with Client(app, raise_errors=False) as client:
        for _ in range(count):
            method, target, headers, body = requests.make()
            said = ""
            try:
                response = client.request(method, target, headers=headers, content=body)
                status = response.status_code
                requests.learn(response.headers.get("location"))
            except ValueError:
                continue  # the client refuses to send it
            except Exception as error:
                status, said = 599, f"{type(error).__name__}: {error}"
            statuses[status] = statuses.get(status, 0) + 1
            if (status not in _NOT_FAILED and status >= 500) or watch.found:
                failed += 1
                print(f"{name}: {status} {method} {target[:300]} {headers} {body[:300]!r} {said}")
                print("".join(watch.found)[-1500:])
                watch.found.clear()
                if failed >= 10:
                    break
    seen = ", ".join(f"{status}: {number}" for status, number in sorted(statuses.items()))
    print(f"{name}: {sum(statuses.values())} requests in {time.monotonic() - began:.0f} s ({seen})")
    return failed


def scaffolded(folder: str, name: str, *arguments: str) -> App:
    """The application that `citius new` makes."""
    from citius.cli import cli
    from click.testing import CliRunner

    done = CliRunner().invoke(cli, ["new", *arguments, f"{folder}/{name}"])
    if done.exit_code:
        raise SystemExit(done.output)
    sys.path.insert(0, f"{folder}/{name}")
    return importlib.import_module(f"{name}.app").app


def applications(stack: ExitStack) -> Iterator[tuple[str, App, float]]:
    """Names, applications and their share of the requests."""
    sys.path.insert(0, str(ROOT / "tests/applications"))
    yield "typed handlers", importlib.import_module("fuzzed_app").app, 0.6
    yield "calls", importlib.import_module("fuzzed_calls_app").app, 0.2
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    yield "citius new", scaffolded(folder, "fuzzed_shop"), 0.1
    try:
        dsn = stack.enter_context(database())
    except NoPostgres as error:
        print(f"citius new --db: not tried, {error}")
        return
    import asyncio
    import os

    from citius import pg

    os.environ["DATABASE_URL"] = dsn
    app = scaffolded(folder, "fuzzed_store", "--db")

    async def migrate() -> None:
        async with pg.Pool(dsn, size=1) as pool:
            await pool.execute(
                "CREATE TABLE item (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
                "name text NOT NULL UNIQUE, price double precision NOT NULL)"
            )

    asyncio.run(migrate())
    yield "citius new --db", app, 0.1


def main() -> None:
    """Run the campaigns; the exit code is 1 if one found something."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    watch = Watch()
    logging.getLogger("citius").addHandler(watch)
    logging.getLogger("citius").propagate = False
    failed = 0
    with ExitStack() as stack:
        for name, app, share in applications(stack):
            failed += campaign(name, app, round(given.requests * share), given.seed, watch)
    if failed:
        print(f"{failed} requests failed; seed {given.seed}")
        sys.exit(1)


if __name__ == "__main__":
    main()
