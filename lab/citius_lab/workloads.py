"""What is asked of a server and which answers are right (the contract of WORKLOADS.md).

The golden answers are computed here, independently of every contestant's code. A check parses an
answer and compares values; it never compares with another server's answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import random
    from collections.abc import Callable


class WrongAnswer(Exception):
    """A server answered, and the answer is not the golden one."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete response as the verifier saw it.

    Attributes:
        encoded: The result of a procedure as it came, around the text in ``body``.
    """

    status: int
    content_type: str
    body: bytes
    elapsed_s: float
    encoded: bytes = b""


@dataclass(frozen=True, slots=True)
class Case:
    """One request that is measured: a workload at one size.

    Attributes:
        id: Name in records and tables; the workload's, with a size where there are several.
        workload: What a contestant has to be able to do.
        target: The request target that is measured.
        connections: Connections of the closed loop: enough to keep one core of any contestant
            busy, few where a request takes long.
        title: What the request makes the server do, for the report.
        articles: Which source articles asked this.
        headers: Further fields of the request.
        body: Content of the request.
        status: The status of a right answer.
        expected: The right body of a case that is not of the contract, to the byte.
        is_stable: Whether every answer has the same bytes, so that the load generator can compare.
    """

    id: str
    workload: str
    target: str
    connections: int
    title: str
    articles: tuple[str, ...]
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    status: int = 200
    expected: bytes | None = None
    is_stable: bool = True

    @property
    def noise_class(self) -> str:
        """What its figures vary with: the machine's kernel and caches, or the work in the handler."""
        return "handler" if self.workload in HANDLER_WORK else "server"

    def check(self, answer: Answer, target: str | None = None) -> None:
        """Check an answer to ``target``, the measured one by default.

        Raises:
            WrongAnswer: Status, type or body are not what the contract says.
        """
        if answer.status != self.status:
            raise WrongAnswer(f"{self.id}: expected status {self.status}, got {answer.status}")
        if self.workload in _CHECKS:
            _CHECKS[self.workload](answer, target or self.target)
        elif self.expected is not None:
            _expect(self.id, self.expected, answer.body)

    def probe(self, random: random.Random) -> str:
        """Return a target of this workload with random input, the measured one if it has none."""
        if self.workload == "million-loop":
            return f"/million-loop?seed={random.randrange(1, 1_000_000_000)}"
        if self.workload == "classify":
            length = random.randrange(0, 120)
            letters = "abcdefghijklmnopqrstuvwxyz0123456789.-"
            return "/classify/" + "".join(random.choices(letters, k=length))
        return self.target


def record(i: int) -> dict[str, object]:
    """Return record ``i`` of the contract."""
    return {
        "id": i,
        "name": "My name",
        "description": "Some words on here so it looks full",
        "type": "U",
        "count": 33,
        "created_at": 1569882498.9117897 + i * 0.0000031,
    }


@lru_cache(maxsize=1)
def records() -> list[dict[str, object]]:
    """Return the 1000 records."""
    return [record(i) for i in range(RECORDS)]


@lru_cache(maxsize=1)
def array_lengths() -> dict[int, str]:
    """Return the lengths that the records have as one JSON array, and the layout of each."""
    compact = json.dumps(records(), separators=(",", ":"))
    return {len(compact): "compact separators", len(json.dumps(records())): "default separators"}


@lru_cache(maxsize=256)
def million_loop(seed: int) -> int:
    """Return the total of the million steps that start at ``seed``."""
    total = seed
    for i in range(1_000_000):
        total += i * 3
        if total & 64:
            total -= i
    return total


def classify(target: bytes) -> dict[str, int]:
    """Return how many bytes after ``/classify`` are close to each name, and how many there are."""
    path = target.removeprefix(b"/classify")
    counts = {
        name: sum(path.count(bytes([byte])) for byte in _near(name.encode())) for name in NAMES
    }
    return {**counts, "total": len(path)}


def _near(name: bytes) -> set[int]:
    return {byte + step for byte in name for step in (-1, 0, 1)}


def _expect(what: str, expected: object, got: object) -> None:
    if expected != got:
        raise WrongAnswer(f"{what}: expected {_short(expected)}, got {_short(got)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _integer(what: str, body: bytes) -> int:
    try:
        return int(body)
    except ValueError:
        raise WrongAnswer(f"{what}: expected a number, got {_short(body)}") from None


def _check_hello(answer: Answer, target: str) -> None:
    _expect("hello", b"Welcome!\n", answer.body)
    _expect("hello, content type", "text/plain", answer.content_type)


def _check_parse_msgpack(answer: Answer, target: str) -> None:
    _expect("parse-msgpack", RECORDS, _integer("parse-msgpack", answer.body))


def _check_encode_json(answer: Answer, target: str) -> None:
    length = _integer("encode-json", answer.body)
    if length not in array_lengths():
        known = " or ".join(str(length) for length in sorted(array_lengths()))
        raise WrongAnswer(f"encode-json: expected {known} characters, got {length}")


def _check_transfer_data(answer: Answer, target: str) -> None:
    _expect("transfer-data, content type", "application/json", answer.content_type)
    try:
        array = json.loads(answer.body)
    except ValueError as error:
        raise WrongAnswer(f"transfer-data: not JSON: {error}") from None
    if not isinstance(array, list):
        raise WrongAnswer(f"transfer-data: expected an array, got {_short(array)}")
    array = cast("list[Any]", array)
    _expect("transfer-data, records", RECORDS, len(array))
    for expected, got in zip(records(), array, strict=True):
        _expect("transfer-data", expected, got)


def _check_million_loop(answer: Answer, target: str) -> None:
    seed = int(target.partition("seed=")[2] or 1)
    _expect(f"million-loop, seed {seed}", million_loop(seed), _integer("million-loop", answer.body))


def _check_async(answer: Answer, target: str) -> None:
    _expect("async", b"OK", answer.body)
    if answer.elapsed_s < SLEEP_S - TIMER_TICK_S:
        raise WrongAnswer(
            f"async: expected a sleep of {SLEEP_S * 1e3:g} ms, "
            f"the answer came after {answer.elapsed_s * 1e3:.2f} ms"
        )


def _check_fibonacci(answer: Answer, target: str) -> None:
    _expect("fibonacci", b"OK", answer.body)


def _check_classify(answer: Answer, target: str) -> None:
    counts = classify(target.encode())
    lines = "".join(f"{name}:\t{count}\n" for name, count in counts.items())
    _expect(f"classify, path of {counts['total']} bytes", lines.encode(), answer.body)


RECORDS = 1000
SLEEP_S = 0.002
# libuv and tokio count in whole milliseconds, and libuv from the start of the loop's turn.
TIMER_TICK_S = 0.001
NAMES = ("navytux.spb.ru", "www.nexedi.com", "lab.nexedi.com", "www.erp5.com")

_CHECKS: dict[str, Callable[[Answer, str], None]] = {
    "hello": _check_hello,
    "parse-msgpack": _check_parse_msgpack,
    "encode-json": _check_encode_json,
    "transfer-data": _check_transfer_data,
    "million-loop": _check_million_loop,
    "async": _check_async,
    "fibonacci": _check_fibonacci,
    "classify": _check_classify,
}

WORKLOADS = tuple(_CHECKS)
# Where most of a request's time is the handler's own.
HANDLER_WORK = ("parse-msgpack", "encode-json", "million-loop", "fibonacci", "classify")

# Those that are procedures, too, where a contestant has any; none takes parameters.
PROCEDURES = ("hello", "parse-msgpack")

# 100 connections is article 002's number and 40 article 004's. The loop of a million steps takes a
# plain Python server some 60 ms, so eight connections keep it busy without queueing for seconds. A
# server that sleeps 2 ms per request needs hundreds of connections before its core is the limit.
CASES = (
    Case("hello", "hello", "/", 100, "answers a greeting", ("000", "002", "003")),
    Case(
        "parse-msgpack",
        "parse-msgpack",
        "/parse-msgpack",
        64,
        "decodes 1000 MessagePack records",
        ("000",),
    ),
    Case(
        "parse-msgpack-varied",
        "parse-msgpack",
        "/parse-msgpack?texts=varied",
        64,
        "decodes 1000 MessagePack records, each with texts of its own",
        (),
    ),
    Case(
        "encode-json",
        "encode-json",
        "/encode-json",
        64,
        "encodes 1000 records as one JSON array",
        ("000",),
    ),
    Case(
        "transfer-data",
        "transfer-data",
        "/transfer-data",
        64,
        "sends a JSON array of 134 kB from memory",
        ("000",),
    ),
    Case(
        "million-loop",
        "million-loop",
        "/million-loop?seed=1",
        8,
        "runs a loop of a million steps with a branch",
        ("000",),
    ),
    Case("async", "async", "/async", 512, "sleeps 2 ms without blocking", ("001",)),
    Case(
        "fibonacci",
        "fibonacci",
        "/fibonacci",
        64,
        "builds the Fibonacci numbers up to 100 million",
        ("001",),
    ),
    Case(
        "classify-0",
        "classify",
        "/classify/",
        40,
        "compares a path of 1 byte with four names",
        ("004",),
    ),
    Case(
        "classify-10",
        "classify",
        "/classify/" + "helloworld",
        40,
        "compares each of 11 path bytes with four names",
        ("004",),
    ),
    Case(
        "classify-100",
        "classify",
        "/classify/" + "helloworld" * 10,
        40,
        "compares each of 101 path bytes with four names",
        ("004",),
    ),
)

CASE_BY_ID = {case.id: case for case in CASES}


def cases_of(workloads: tuple[str, ...] | list[str]) -> list[Case]:
    """Return the cases of the given workloads, in the order of the contract."""
    return [case for case in CASES if case.workload in workloads]
