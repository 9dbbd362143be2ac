"""`decode_many` beside msgspec, over types, messages and batches that are generated from fixed seeds.

Both either make the same value, compared type by type and bit by bit, or raise the same error.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import random
import struct
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
import pytest
from citius._core import RecordDecoder
from citius.msgpack import decode_many, decoder_of

TYPES_PER_SEED = 150
BATCHES_PER_TYPE = 4
MESSAGES_MAX = 24


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 200


class Point(msgspec.Struct):
    x: int | float
    y: float | None = None


class Circle(msgspec.Struct, tag="circle"):
    r: float


class Square(msgspec.Struct, tag="square", forbid_unknown_fields=True):
    side: int


class Pair(msgspec.Struct, array_like=True):
    a: int
    b: str = "b"


# Texts of eight bytes, and the floats of the same bytes.
TWINS = ["@@@@@@@@", "?\x01aaaaaa", "AAAAAAAA", "abcdefgh", "\x00" * 8, "\x7f" * 8]
TEXTS = ["", "a", "A", "\xe9", "\u4e16\u754c", "\U0001f600", "\x00", "red", "blue", "x" * 31, "x" * 32,
         "y" * 64, "z" * 65, "v" * 256, "2020-02-02T00:00:00Z", "1.5", *TWINS]  # fmt: skip
REALS = [0.0, -0.0, 1.0, 1.5, -2.0, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"),
         *(struct.unpack(">d", text.encode())[0] for text in TWINS)]  # fmt: skip
INTEGERS = [0, 1, 2, 31, 32, 127, 128, 200, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
            2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -1, -32, -33, -128, -129, -32_768, -32_769, -(2**31),
            -(2**31) - 1, -(2**63)]  # fmt: skip
BLOBS = [b"", b"\xff", b"\x00" * 8, b"@@@@@@@@", b"x" * 256, *(text.encode() for text in TWINS)]
MOMENT = datetime.datetime(2020, 2, 2, 3, 4, 5, 678_000, datetime.UTC)

PLAIN: list[Any] = [int, float, str, bytes, bool, None]
OTHERS: list[Any] = [
    Any, msgspec.Raw, msgspec.msgpack.Ext, datetime.datetime, datetime.date, datetime.timedelta,
    decimal.Decimal, uuid.UUID, Color, Level, Literal[1, 2, "a"], Literal[None, "red"], Point, Circle,
    Pair, Circle | Square, Circle | int | None, list[int], list[Any], dict[str, float], dict[int, str],
    tuple[int, str], tuple[float, ...], set[int], frozenset[str], Annotated[int, msgspec.Meta(gt=0)],
    Annotated[str, msgspec.Meta(max_length=8)], Annotated[float, msgspec.Meta(lt=2)], bytearray,
    msgspec.UnsetType | int,
]  # fmt: skip


class Writer:
    """MessagePack in all the widths that a peer may choose, not only the shortest."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def write(self, value: Any) -> bytes:
        if value is None or isinstance(value, bool):
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        if isinstance(value, int):
            return self.integer(value)
        if isinstance(value, float):
            return self.real(value)
        if isinstance(value, str):
            raw = value.encode()
            return self.sized(len(raw), {"fix": (0xA0, 31), "B": 0xD9, "H": 0xDA, "I": 0xDB}) + raw
        if isinstance(value, bytes):
            return self.sized(len(value), {"B": 0xC4, "H": 0xC5, "I": 0xC6}) + value
        if isinstance(value, list):
            head = self.sized(len(value), {"fix": (0x90, 15), "H": 0xDC, "I": 0xDD})
            return head + b"".join(map(self.write, value))
        if isinstance(value, dict):
            head = self.sized(len(value), {"fix": (0x80, 15), "H": 0xDE, "I": 0xDF})
            return head + b"".join(self.write(k) + self.write(v) for k, v in value.items())
        return msgspec.msgpack.encode(value)  # timestamps and extensions

    def integer(self, value: int) -> bytes:
        forms = [struct.pack(">b", value)] if -32 <= value <= 127 else []
        for head, code in zip(range(0xCC, 0xD4), "BHIQbhiq", strict=True):
            try:
                forms.append(bytes([head]) + struct.pack(">" + code, value))
            except struct.error:
                continue
        return self.pick(forms)

    def real(self, value: float) -> bytes:
        forms = [b"\xcb" + struct.pack(">d", value)]
        if value != value or value in (0.0, 1.0, 1.5, -2.0):
            forms.append(b"\xca" + struct.pack(">f", value))
        return self.pick(forms)

    def sized(self, size: int, heads: dict[str, Any]) -> bytes:
        forms: list[bytes] = []
        for code, head in heads.items():
            if code == "fix":
                forms += [bytes([head[0] | size])] if size <= head[1] else []
            elif size < 1 << 8 * struct.calcsize(code):
                forms.append(bytes([head]) + struct.pack(">" + code, size))
        return self.pick(forms)

    def pick(self, forms: list[bytes]) -> bytes:
        """The shortest mostly: that is what nearly all peers send."""
        return forms[0] if self.dice.random() < 0.85 else self.dice.choice(forms)


class Maker:
    """Types, values that fit them, and messages."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.writer = Writer(self.dice)

    def type(self) -> Any:
        """A Struct that msgspec can decode: not every union and not every choice of options is one."""
        while True:
            try:
                made = self.any_type()
                msgspec.msgpack.Decoder(made)
            except (TypeError, ValueError):
                continue
            return made

    def any_type(self) -> Any:
        dice = self.dice
        fields: list[Any] = []
        needs_default = False
        for index in range(dice.choice([0, 1, 1, 2, 3, 4, 16, 17])):
            annotation = self.annotation()
            needs_default = needs_default or dice.random() < 0.1
            field: tuple[Any, ...] = (f"field_{index}", annotation)
            fields.append((*field, self.default()) if needs_default else field)
        base = dice.choice(
            [None, None, None, self.struct("Base", [("base_field", int | str)], None)]
        )
        return self.struct("Made", fields, base, kw_only=base is not None)

    def struct(self, name: str, fields: list[Any], base: Any, **options: Any) -> Any:
        dice = self.dice
        options["bases"] = None if base is None else (base,)
        choices: dict[str, Any] = {
            "rename": dice.choice(["camel", "pascal", "kebab", str.upper, lambda n: n + "_" * 30]),
            "forbid_unknown_fields": True, "omit_defaults": True, "weakref": True, "dict": True,
            "order": True, "repr_omit_defaults": True,
        }  # fmt: skip
        options |= {key: value for key, value in choices.items() if dice.random() < 0.15}
        if base is None:
            rare = {"array_like": True, "tag": dice.choice([True, "made", 7]), "gc": False,
                    "frozen": True, "cache_hash": True}  # fmt: skip
            options |= {key: value for key, value in rare.items() if dice.random() < 0.06}
            if options.get("cache_hash"):
                options["frozen"] = True
        return msgspec.defstruct(name, fields, **options)

    def annotation(self) -> Any:
        dice = self.dice
        pool = PLAIN if dice.random() < 0.97 else OTHERS
        chosen = dice.choice(pool)
        for _ in range(dice.choice([0, 0, 1, 2, 4])):
            chosen = chosen | dice.choice(PLAIN) if pool is PLAIN and chosen is not None else chosen
        return chosen

    def default(self) -> Any:
        return self.dice.choice([None, 0, "default", msgspec.field(default_factory=list)])

    def value(self, kind: Any) -> Any:
        """One that `kind`, a type as `msgspec.inspect` has it, will mostly take."""
        dice, name = self.dice, type(kind).__name__
        if name == "UnionType":
            return self.value(dice.choice(kind.types))
        if isinstance(kind, msgspec.inspect.StructType):
            return self.struct_value(kind)
        pools: dict[str, Any] = {
            "IntType": INTEGERS, "FloatType": REALS + INTEGERS[:3], "StrType": TEXTS, "BytesType": BLOBS,
            "BoolType": [False, True], "NoneType": [None], "DateTimeType": [MOMENT, TEXTS[-7]],
            "DateType": ["2020-02-02"], "TimeDeltaType": [1.5, "PT1S"], "DecimalType": ["1.5", 2.5],
            "UUIDType": [str(uuid.UUID(int=5)), uuid.UUID(int=5).bytes], "EnumType": ["red", 1, 200],
            "LiteralType": [1, 2, "a", None, "red"], "ExtType": [msgspec.msgpack.Ext(5, b"data")],
            "ListType": [[], [1, 2]], "SetType": [[1, 1]], "FrozenSetType": [["a"]],
            "VarTupleType": [[1.5, 2.0]], "TupleType": [[1, "a"]], "DictType": [{}, {"a": 1.5}, {1: "a"}],
        }  # fmt: skip
        anything = [*INTEGERS, *REALS, *TEXTS, *BLOBS, None, True, [1, "a"], {"a": 1}, MOMENT]
        return dice.choice(pools.get(name, anything) if dice.random() < 0.98 else anything)

    def struct_value(self, kind: msgspec.inspect.StructType) -> Any:
        dice = self.dice
        pairs = [(f.encode_name, self.value(f.type)) for f in kind.fields
                 if f.required or dice.random() < 0.95]  # fmt: skip
        if kind.array_like:
            return [*([kind.tag] if kind.tag is not None else []), *(value for _, value in pairs)]
        if kind.tag is not None:
            pairs.insert(0, (str(kind.tag_field), kind.tag))
        if dice.random() < 0.04:
            dice.shuffle(pairs)
        if dice.random() < 0.04:
            pairs.insert(dice.randint(0, len(pairs)), ("unknown", dice.choice(INTEGERS)))
        if pairs and dice.random() < 0.02:
            pairs.pop(dice.randrange(len(pairs)))
        return dict(pairs)

    def message(self, kind: msgspec.inspect.Type) -> bytes:
        dice = self.dice
        message = bytearray(self.writer.write(self.value(kind)))
        if dice.random() < 0.02:
            message[dice.randrange(len(message))] = dice.randrange(256)
        if dice.random() < 0.01:
            del message[dice.randrange(len(message)) :]
        if dice.random() < 0.01:
            message += b"\x00"
        return bytes(message)


def exactly(value: Any) -> Any:
    """`value` in a form in which only what is the same is equal."""
    if isinstance(value, float):
        return float, struct.pack(">d", value)
    if isinstance(value, msgspec.Struct):
        fields = [(name, exactly(getattr(value, name))) for name in value.__struct_fields__]
        return type(value), fields
    if isinstance(value, (list, tuple)):
        return type(value), [exactly(part) for part in value]
    if isinstance(value, dict):
        return dict, [(exactly(k), exactly(v)) for k, v in value.items()]
    return type(value), value if value == value else repr(value)


def outcome(decode: Callable[[], Any]) -> Any:
    try:
        return exactly(decode())
    except Exception as error:  # msgspec may raise any exception
        return type(error), str(error)


def both(batch: list[bytes], made: Any) -> tuple[Any, Any]:
    decode = msgspec.msgpack.Decoder(made).decode
    return (
        outcome(lambda: decode_many(batch, made)),
        outcome(lambda: [decode(message) for message in batch]),
    )


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 20))]
)
def test_generated_types_and_batches_are_decoded_as_by_msgspec(seed: int) -> None:
    maker = Maker(seed)
    fast = decoded = refused = 0
    for _ in range(TYPES_PER_SEED):
        made = maker.type()
        kind = msgspec.inspect.type_info(made)
        fast += isinstance(getattr(decoder_of(made), "__self__", None), RecordDecoder)
        for _ in range(BATCHES_PER_TYPE):
            batch = [maker.message(kind) for _ in range(maker.dice.randint(1, MESSAGES_MAX))]
            ours, theirs = both(batch, made)
            assert ours == theirs, (seed, msgspec.inspect.type_info(made), batch)
            # A batch ends with the first wrong message: those behind it are looked at alone.
            is_refused = theirs[0] is not list
            refused += is_refused
            decoded += not is_refused
            for message in batch if is_refused else []:
                ours, theirs = both([message, message], made)
                assert ours == theirs, (seed, msgspec.inspect.type_info(made), message)
    # Both ways were taken, and both ends reached.
    assert fast > TYPES_PER_SEED / 4
    assert TYPES_PER_SEED - fast > TYPES_PER_SEED / 20
    assert decoded > TYPES_PER_SEED
    assert refused > TYPES_PER_SEED


@pytest.mark.parametrize("made", [*PLAIN, *OTHERS, list[Point], dict[str, Point], Point | None])
def test_types_that_are_no_struct_are_decoded_as_by_msgspec(made: Any) -> None:
    maker = Maker(99)
    kind = msgspec.inspect.type_info(made)
    for _ in range(30):
        batch = [maker.message(kind) for _ in range(3)]
        ours, theirs = both(batch, made)
        assert ours == theirs, batch
