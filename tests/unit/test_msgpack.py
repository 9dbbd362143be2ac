"""`citius.msgpack.decode_many` makes what msgspec makes of each message, and refuses what it refuses."""

from __future__ import annotations

import dataclasses
import gc
import random
import struct
import sys
import weakref
from typing import Annotated, Any

import msgspec
import pytest
from citius._core import RecordDecoder
from citius.msgpack import decode_many, decoder_of
from citius.process.processors import has_gil


class Plain(msgspec.Struct):
    number: int
    text: str
    real: float
    flag: bool
    data: bytes
    maybe: str | None = None
    either: int | str | None = 5


class Base(msgspec.Struct, frozen=True, rename="camel"):
    first_name: str


class Derived(Base, frozen=True, weakref=True):
    birth_year: int = 1990


class WithoutGc(msgspec.Struct, gc=False):
    a: int
    b: str


def is_fast(kind: type) -> bool:
    return isinstance(getattr(decoder_of(kind), "__self__", None), RecordDecoder)


def sample(dice: random.Random) -> Plain:
    numbers = [0, 1, 127, 128, 255, 65_535, 65_536, 2**32 - 1, 2**32, 2**63 - 1, 2**64 - 1,
               -1, -32, -33, -128, -129, -32_768, -32_769, -(2**31), -(2**31) - 1, -(2**63)]  # fmt: skip
    texts = ["", "a", "\u00e9", "\u4e16\u754c", "\U0001f600", "x" * 31, "x" * 32, "y" * 64, "z" * 65,
             "w" * 255, "v" * 256, "u" * 70_000]  # fmt: skip
    return Plain(
        dice.choice(numbers), dice.choice(texts), dice.choice([0.0, -0.0, 1.5, 1e300, float("inf")]),
        dice.random() < 0.5, dice.choice([b"", b"\xff", b"x" * 256, b"y" * 70_000]),
        dice.choice([None, *texts]), dice.choice([None, *numbers, *texts]),
    )  # fmt: skip


def test_records_are_those_of_msgspec() -> None:
    dice = random.Random(5)
    records = [sample(dice) for _ in range(500)]
    packed = [msgspec.msgpack.encode(record) for record in records]
    assert is_fast(Plain)
    made = decode_many(packed, Plain)
    assert made == records
    assert all(type(record) is Plain for record in made)
    assert [repr(record) for record in made] == [repr(record) for record in records]


class Mixed(msgspec.Struct):
    either: float | str


@pytest.mark.parametrize("text", ["@@@@@@@@", "abcdefgh", "AAAAAAAA"])
def test_a_text_and_a_float_of_the_same_bytes_are_not_mistaken_for_each_other(text: str) -> None:
    (real,) = struct.unpack(">d", text.encode())
    for values in ([real, text, real, text], [text, real, text, real]):
        packed = [msgspec.msgpack.encode(Mixed(value)) for value in values]
        assert is_fast(Mixed)
        assert [record.either for record in decode_many(packed, Mixed)] == values


def test_changed_messages_have_the_same_fate() -> None:
    dice = random.Random(6)
    decode = msgspec.msgpack.Decoder(Plain).decode
    short = msgspec.msgpack.encode(Plain(300, "text", 1.5, True, b"data", "x", -200))
    for _ in range(20_000):
        message = bytearray(short)
        for _ in range(dice.randint(1, 3)):
            message[dice.randrange(len(message))] = dice.randrange(256)
        if dice.random() < 0.2:
            del message[dice.randrange(len(message)) :]
        if dice.random() < 0.1:
            message += b"\x00"
        outcome: list[Any] = []
        for call in (decode, lambda data: decode_many([short, data], Plain)[1]):
            try:
                outcome.append(repr(call(bytes(message))))
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                outcome.append((type(error), str(error)))
        assert outcome[0] == outcome[1], bytes(message)


def test_structs_of_all_kinds() -> None:
    people = [Derived("Ada", 1815), Derived("Grace")]
    assert is_fast(Derived)
    made = decode_many([msgspec.msgpack.encode(person) for person in people], Derived)
    assert made == people
    assert hash(made[0]) == hash(people[0])
    assert weakref.ref(made[0])() is made[0]
    assert is_fast(WithoutGc)
    assert decode_many([msgspec.msgpack.encode(WithoutGc(1, "x"))], WithoutGc) == [
        WithoutGc(1, "x")
    ]
    # Fields that are missing, in another order or unknown are msgspec's business.
    assert decode_many([msgspec.msgpack.encode({"firstName": "Joan"})], Derived) == [
        Derived("Joan")
    ]
    turned = msgspec.msgpack.encode({"birthYear": 1, "more": [], "firstName": "Joan"})
    assert decode_many([turned], Derived) == [Derived("Joan", 1)]


class Positive(msgspec.Struct):
    n: Annotated[int, msgspec.Meta(gt=0)]


class Checked(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("below zero")


class Tagged(msgspec.Struct, tag=True):
    n: int


class Row(msgspec.Struct, array_like=True):
    n: int


class Nested(msgspec.Struct):
    n: Row


@dataclasses.dataclass
class Data:
    n: int


@pytest.mark.parametrize("kind", [Positive, Checked, Tagged, Row, Nested, Data, dict, int])
def test_everything_else_is_left_to_msgspec(kind: Any) -> None:
    assert not is_fast(kind)
    value = {Nested: Nested(Row(1)), dict: {"n": 1}, int: 1}.get(kind)
    value = kind(1) if value is None else value
    assert decode_many([msgspec.msgpack.encode(value)] * 2, kind) == [value] * 2
    if kind in (Positive, Checked):
        with pytest.raises(msgspec.ValidationError):
            decode_many([msgspec.msgpack.encode({"n": -1})], kind)


class MadeByItself(msgspec.Struct):
    n: int


def refuse(cls: Any, *args: Any) -> Any:
    raise TypeError("it has to be made in another way")


# msgspec refuses classes that define it, and not that it is set later.
MadeByItself.__new__ = refuse  # type: ignore[method-assign, assignment] # pyright: ignore


class Slotted:
    __slots__ = ("n",)


@pytest.mark.parametrize("kind", [MadeByItself, Slotted, int, type])
def test_types_with_a_new_of_their_own_are_not_made_without_it(kind: Any) -> None:
    fields = [("n", "n", ["int"])] if hasattr(kind, "n") else []
    with pytest.raises(ValueError, match="expected a msgspec.Struct without a __new__ of its own"):
        RecordDecoder(kind, fields, msgspec.msgpack.decode)


def test_any_iterable_and_any_buffer() -> None:
    message = msgspec.msgpack.encode(WithoutGc(1, "x"))
    assert decode_many((m for m in [message]), WithoutGc) == [WithoutGc(1, "x")]
    assert (
        decode_many([bytearray(message), memoryview(message)], WithoutGc) == [WithoutGc(1, "x")] * 2
    )  # type: ignore[list-item]
    with pytest.raises(TypeError):
        decode_many(["text"], WithoutGc)  # type: ignore[list-item]
    assert decode_many([], WithoutGc) == []


def test_nothing_leaks() -> None:
    text = "a text that nothing else has"
    messages = [
        msgspec.msgpack.encode(Plain(2**40 + i, text, i / 3, True, b"data")) for i in range(100)
    ]
    broken = [message[:-3] for message in messages]
    decode = decoder_of(Plain)

    def rounds(count: int) -> None:
        for _ in range(count):
            decode(messages)
            with pytest.raises(msgspec.DecodeError):
                decode(broken)

    rounds(5)
    gc.collect()
    before = sys.getallocatedblocks()
    rounds(50)
    gc.collect()
    assert sys.getallocatedblocks() - before < 100
    if has_gil():  # else types count their references per thread, and all objects are tracked
        references = sys.getrefcount(Plain)
        kept = decode(messages)
        assert sys.getrefcount(Plain) == references + len(kept)
        assert not any(gc.is_tracked(record) for record in kept)
