"""Procedures whose results have more fields than they declare."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated

import msgspec
import pydantic
from citius import App, Depends

app = App()


class User(msgspec.Struct):
    name: str


class Full(User):
    password: str = "SECRET"


class Model(pydantic.BaseModel):
    name: str


class FullModel(Model):
    password: str = "SECRET"


@dataclass
class Record:
    name: str


@dataclass
class FullRecord(Record):
    password: str = "SECRET"


def session() -> Iterator[str]:
    yield "ann"


@app.rpc
def plain() -> User:
    return Full("ann")


@app.rpc
def named(name: str) -> Sequence[User]:
    return [Full(name)]


@app.rpc
async def awaited(name: str = "ann") -> dict[str, User]:
    return {"one": Full(name)}


@app.rpc(blocking=True)
def blocking() -> User | None:
    return Full("ann")


@app.rpc
def many(*names: str) -> list[Record]:
    return [FullRecord(name) for name in names]


@app.rpc
def model() -> list[Model]:
    return [FullModel(name="ann")]


@app.rpc
def depends(name: Annotated[str, Depends(session)]) -> User:
    return Full(name)


@app.rpc
async def depends_awaited(name: Annotated[str, Depends(session)]) -> User:
    return Full(name)


@app.rpc(blocking=True)
def depends_blocking(name: Annotated[str, Depends(session)]) -> User:
    return Full(name)


@app.rpc
def nothing() -> User | None:
    return None


if find_spec("greenlet"):

    @app.rpc(serial=True)
    def serial() -> User:
        return Full("ann")
