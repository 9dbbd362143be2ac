"""Fast paths of the native gateway against the general way: the same requests get the same responses.

Without arguments, or with the request alone, a `def` handler is called by a shorter way (``Shape``);
types whose values have been encoded before are not examined again (``DataTypes``). With neither of them
`make test-slow-paths` runs this file, too.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import random
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from citius import App, NotFound, Request, Response
from citius.testing import Client, TestResponse


class Item(msgspec.Struct):
    name: str
    price: float = 1.0


@dataclasses.dataclass
class Point:
    x: int = 3


class Pair(NamedTuple):
    left: int
    right: str


class Color(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


class Bytes(bytes):
    __slots__ = ()


class Unknown:
    pass


class Odd(dict[str, Any]):
    """A mapping that can be iterated over like a stream."""

    def __next__(self) -> bytes:
        raise StopIteration


def fail() -> Any:
    raise NotFound("not here")


def crash() -> Any:
    raise RuntimeError("a defect")


VALUES: dict[str, Callable[[], Any]] = {
    "text": lambda: "tëxt",
    "no text": lambda: "",
    "surrogate": lambda: "\ud800",
    "bytes": lambda: b"bytes",
    "many bytes": lambda: b"x" * 20_000,
    "bytearray": lambda: bytearray(b"array"),
    "memoryview": lambda: memoryview(b"view"),
    "text subclass": lambda: Text("sub"),
    "bytes subclass": lambda: Bytes(b"sub"),
    "none": lambda: None,
    "dict": lambda: {"a": 1, "b": [1.5, None]},
    "large dict": lambda: {str(n): "x" * 50 for n in range(400)},
    "unencodable dict": lambda: {"a": object()},
    "list": lambda: [1, "two", {"three": 3}],
    "ordered dict": lambda: OrderedDict(a=1),
    "default dict": lambda: defaultdict(int, a=1),
    "odd dict": lambda: Odd(a=1),
    "tuple": lambda: (1, 2),
    "named tuple": lambda: Pair(1, "r"),
    "set": lambda: {1},
    "int": lambda: 7,
    "bool": lambda: True,
    "float": lambda: 0.5,
    "struct": lambda: Item("n"),
    "dataclass": Point,
    "enum": lambda: Color.RED,
    "uuid": lambda: uuid.UUID(int=5),
    "decimal": lambda: decimal.Decimal("1.50"),
    "date": lambda: datetime.date(2024, 2, 29),
    "unknown": Unknown,
    "generator": lambda: (piece for piece in (b"a", b"b")),
    "response": lambda: Response("teapot", status_code=418, headers={"x-a": "b"}),
    "response of a struct": lambda: Response(Item("r"), status_code=201),
    "bad response": lambda: Response("x", headers={"x-a": "b\r\nc: d"}),
    "not found": fail,
    "defect": crash,
}
METHODS = ["GET", "GET", "GET", "HEAD"]
NAMES = ["accept", "Accept", "ACCEPT", "x-accept", "connection", "cookie"]
ACCEPTS = [
    "application/json", "application/msgpack", "application/msgpack;q=0.1, application/json", "*/*",
    "application/msgpack, application/json;q=0.5", "", "text/html", "application/MSGPACK",
]  # fmt: skip


def requests(seed: int, count: int) -> list[tuple[str, list[tuple[str, str]]]]:
    """Methods and headers, of which most are those of the request before."""
    dice = random.Random(seed)
    headers: list[tuple[str, str]] = []
    made = [("GET", list(headers))]
    while len(made) < count:
        if dice.random() < 0.5:
            made.append(made[-1])
            continue
        headers = list(made[-1][1])
        change = dice.randrange(4)
        if change == 0 or not headers:
            name = dice.choice(NAMES)
            value = "keep-alive" if name == "connection" else dice.choice(ACCEPTS)
            headers.insert(dice.randint(0, len(headers)), (name, value))
        elif change == 1:
            headers.append(dice.choice(headers))
        elif change == 2:
            headers.pop(dice.randrange(len(headers)))
        else:
            dice.shuffle(headers)
        made.append((dice.choice(METHODS), headers))
    return made


def parts(answer: TestResponse) -> tuple[int, list[tuple[str, str]], bytes]:
    headers = [(name, value) for name, value in answer.headers.items() if name != "date"]
    return answer.status_code, sorted(headers), answer.content


@pytest.mark.parametrize("name", VALUES)
def test_every_shape_and_every_repetition_of_a_handler_gives_the_same_response(name: str) -> None:
    make = VALUES[name]
    app = App()
    app.get("/bare")(lambda: make())
    app.get("/default/{_x}")(lambda: make())
    app.get("/general/{x}")(lambda x: make())

    @app.get("/alone")
    def alone(request: Request) -> Any:
        return make()

    @app.get("/asked/{x}")
    def asked(request: Request, x: str) -> Any:
        return make()

    @app.get("/async")
    async def stepped() -> Any:
        return make()

    paths = ["/general/1", "/bare", "/bare", "/alone", "/alone", "/asked/1", "/async", "/default/1"]
    with Client(app, raise_errors=False) as client:
        for method, headers in requests(seed=len(name), count=10):
            answers = [parts(client.request(method, path, headers=headers)) for path in paths]
            for path, answer in zip(paths, answers, strict=True):
                assert answer == answers[0], (path, method, headers)


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("none", "defect")])
def test_a_value_is_sent_as_a_response_that_has_it_for_its_body(name: str) -> None:
    """The body of a `Response` is always examined, also if the type of the handler is known."""
    make = VALUES[name]
    if isinstance(outcome_of(make), Response | BaseException):
        return
    app = App()
    app.get("/value")(lambda: make())
    app.get("/body")(lambda: Response(make()))
    with Client(app, raise_errors=False) as client:
        for method, headers in requests(seed=1, count=12):
            answers = [
                parts(client.request(method, path, headers=headers))
                for path in ("/body", "/value", "/value")
            ]
            assert answers[0] == answers[1] == answers[2], (method, headers)


def outcome_of(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except Exception as error:
        return error


def test_types_beyond_those_that_are_kept_are_encoded_all_the_same() -> None:
    kinds = [msgspec.defstruct(f"Kind{n}", [("a", int)]) for n in range(40)]
    app = App()
    app.get("/{n:int}")(lambda n: kinds[n](n))
    with Client(app, raise_errors=False) as client:
        for _ in range(2):
            for n in range(40):
                assert client.get(f"/{n}").json() == {"a": n}
