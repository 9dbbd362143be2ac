"""``citius proto``: what annotations become, and that a compiler of protocol buffers takes it."""

from __future__ import annotations

import datetime
import decimal
import enum
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from citius import App, ConfigError, Depends
from citius.testing import Client
from citius.web.routing.rpc.proto import proto_files

BUF = Path(__file__).parents[2] / ".tools/connect/environment/bin/buf"
CONNECT_APP = Path(__file__).parents[1] / "applications/connect_app.py"


class Color(enum.Enum):
    RED = "red"


class Tree(msgspec.Struct):
    children: list[Tree]
    name: str | None = None


@dataclass
class Item:
    item_id: int
    price: decimal.Decimal


class Options(TypedDict):
    dry_run: bool


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str


app = App()


@app.rpc("shop.Orders.create_order")
async def create_order(
    items: list[Item],
    at: datetime.datetime,
    count: Annotated[int, msgspec.Meta(ge=1)],
    by_name: dict[str, Item],
    table: list[list[int]],
    color: Color,
    mode: Literal["a", "b"],
    either: int | str,
    raw: bytes,
    options: Options,
    message: float = 1.0,
    anything: Any = None,
) -> Tree:
    """Order items.

    At once.
    """
    return Tree([])


@app.rpc("shop.Orders.watch")
async def watch() -> AsyncIterator[Renamed]:
    yield Renamed("x")


@app.rpc("shop.Orders.names")
async def names() -> list[str]:
    return []


app.connect()


def test_what_annotations_become() -> None:
    (text,) = proto_files(app).values()
    assert text.split("\n", 3)[:3] == [
        "// `citius proto` writes this file. Calls are sent as JSON.", 'syntax = "proto3";', "",
    ]  # fmt: skip
    assert "package shop;" in text
    assert (
        "service Orders {\n"
        "  // Order items.\n"
        "  //\n"
        "  // At once.\n"
        "  rpc create_order(CreateOrderRequest) returns (Tree);\n"
        "  rpc watch(WatchRequest) returns (stream Renamed);\n"
        "  rpc names(NamesRequest) returns (NamesResponse);\n"
        "}\n"
    ) in text
    fields = [
        "repeated Item items = 1;",
        "optional string at = 2;",
        "optional int64 count = 3;",
        'map<string, Item> by_name = 4 [json_name = "by_name"];',
        "optional google.protobuf.ListValue table = 5;",
        "optional string color = 6;",
        "optional string mode = 7;",
        "optional google.protobuf.Value either = 8;",
        "optional bytes raw = 9;",
        "optional Options options = 10;",
        "optional double message_ = 11;",
        "optional google.protobuf.Value anything = 12;",
    ]
    body = text.partition("message CreateOrderRequest {\n")[2].partition("}")[0]
    assert [line.strip() for line in body.strip().split("\n")] == fields
    assert "message Tree {\n  repeated Tree children = 1;\n  optional string name = 2;\n}" in text
    assert (
        'optional int64 item_id = 1 [json_name = "item_id"];\n  optional string price = 2;' in text
    )
    assert "message Renamed {\n  optional string firstName = 1;\n}" in text
    assert "message NamesResponse {\n  repeated string result = 1;\n}" in text


@pytest.mark.skipif(not BUF.exists(), reason="`make connect-conformance` installs buf")
def test_a_compiler_takes_it(tmp_path: Path) -> None:
    for name, text in proto_files(app).items():
        (tmp_path / name).write_text(text)
        done = subprocess.run([BUF, "build", tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "citius", "proto", f"{CONNECT_APP}:app"]
    done = subprocess.run([*command, "-o", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == ["citius.proto", "procedures.proto"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.count('syntax = "proto3";') == 2


def _caller(token: str) -> str:
    return token


async def _many(*numbers: int) -> int:
    return 0


async def _for(caller: str = Depends(_caller), *numbers: int) -> int:
    return 0


async def _watch(*numbers: int) -> AsyncIterator[int]:
    yield 0


@pytest.mark.parametrize("handler", [_many, _for, _watch])
def test_what_cannot_be_called_by_connect_is_not_described(handler: Any) -> None:
    app = App()
    app.rpc(handler)
    told = rf"{handler.__name__} \(.*test_proto\.py:\d+\).* takes \*numbers"
    with pytest.raises(ConfigError, match=told) as described:
        proto_files(app)
    app.connect("/api")
    with pytest.raises(ConfigError) as served, Client(app):
        pass
    assert str(described.value) == str(served.value)
