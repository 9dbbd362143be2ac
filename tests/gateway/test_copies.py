"""Copies of records: the same responses as by ``msgspec.convert``, and no field that is not declared."""

from __future__ import annotations

import datetime
import decimal
import enum
import random
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, cast

import attrs
import msgspec
import pydantic
import pytest
from citius import App, ConfigError
from citius._core import FAST_PATHS, DeclaredResponse
from citius.testing import Client
from citius.web.declarations.codecs import encode_json
from citius.web.responses import results
from citius.web.responses.declared.field_copies import Unfit, copier, node_of
from msgspec import Meta, Struct


class Tag(Struct, frozen=True):
    name: str


class SecretTag(Tag, frozen=True):
    secret: str = "secret"


class Product(Struct, kw_only=True, rename="camel"):
    id: int
    unit_price: float = 1.5
    tags: list[Tag] = []
    main_tag: Tag | None = None
    by_name: dict[str, Tag] = {}


class StoredProduct(Product, kw_only=True):
    secret: str = "secret"


class Page(Struct):
    items: list[Product]
    total: Annotated[int, Meta(ge=0)] = 0


class Draft(Struct):
    title: str | msgspec.UnsetType = msgspec.UNSET


class StoredDraft(Draft):
    secret: str = "secret"


class Circle(Struct, tag=True):
    radius: float


class Square(Struct, tag=True):
    side: float


class Named(Struct):
    """Fields with the names that the function itself could have."""

    value: Tag
    cls: Tag
    copy: Tag
    v0: Tag


class Node(Struct):
    value: int
    next: Node | None = None


@dataclass
class Point:
    x: int
    y: int


FULL: Any = {
    "tags": [Tag("a"), SecretTag("b")],
    "main_tag": SecretTag("c"),
    "by_name": {"d": SecretTag("d")},
}
VALUES: list[tuple[Any, Any]] = [
    (Product, Product(id=1)),
    (Product, StoredProduct(id=1)),
    (Product, Product(id=1, **FULL)),
    (Product, StoredProduct(id=1, **FULL)),
    (Product, {"id": 1, "unitPrice": 2.5}),
    (Page, Page([])),
    (Page, Page([Product(id=1), StoredProduct(id=2, **FULL)], 2)),
    (list[Product], [StoredProduct(id=1), Product(id=2)]),
    (list[Product], (StoredProduct(id=1),)),
    (dict[str, Product], {"a": StoredProduct(id=1)}),
    (Product | None, StoredProduct(id=1)),
    (Circle | Square, Square(1.0)),
    (list[Circle | Square | None], [Circle(1.0), None, Square(2.0)]),
    (Named, Named(SecretTag("a"), SecretTag("b"), SecretTag("c"), SecretTag("d"))),
    (Node, Node(1, Node(2))),
    (Point, Point(1, 2)),
    (list[int], [1, 2]),
]


def sent(model: Any, value: Any) -> Any:
    app = App()

    @app.get("/", response=model)
    def get() -> Any:
        return value

    with Client(app) as client:
        return client.get("/").json()


def has_none(model: Any) -> None:
    """In place of `copier` and `node_of`."""


@pytest.mark.parametrize(("model", "value"), VALUES)
def test_copies_are_what_msgspec_converts(
    model: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sent(model, value)
    assert "secret" not in str(found)
    monkeypatch.setattr(results, "node_of", has_none)
    assert sent(model, value) == found
    monkeypatch.setattr(results, "copier", has_none)
    assert sent(model, value) == found


def test_what_is_exactly_declared_is_not_copied() -> None:
    page = Page([Product(id=1, tags=[Tag("a")])])
    copy = copier(Page)
    assert copy is not None
    assert copy(page) is page
    page.items.append(StoredProduct(id=2))
    copied = copy(page)
    assert copied is not page
    assert copied.items[0] is page.items[0]
    assert type(copied.items[1]) is Product


def test_fields_that_are_not_set_stay_so() -> None:
    assert sent(Draft, StoredDraft()) == {}
    assert sent(list[Draft], [StoredDraft(title="a")]) == [{"title": "a"}]


def test_values_of_another_shape_need_another_way() -> None:
    copy = copier(Page)
    assert copy is not None
    values: list[Any] = [{"items": []}, Page(cast("Any", (Product(id=1),))), None]
    values.append(Page(cast("Any", [{"id": 1}])))
    for value in values:
        with pytest.raises(Unfit):
            copy(value)


def test_names_that_are_keywords_need_another_way() -> None:
    assert copier(msgspec.defstruct("Odd", [("class", Tag)])) is None


def test_a_class_that_is_extended_later_sends_no_more() -> None:
    app = App()
    found: list[Page] = []

    @app.get("/")
    def get() -> Page:
        return found[0]

    with Client(app) as client:

        class LaterProduct(Product, kw_only=True):
            secret: str = "secret"

        found.append(Page([LaterProduct(id=1)]))
        assert "secret" not in client.get("/").text


@pytest.mark.parametrize("model", [int, list[int], Point, Node, tuple[Product, ...], None])
def test_types_without_records_or_beyond_it_have_none(model: Any) -> None:
    assert copier(model) is None


# --- parts for which no class is declared ----------------------------------------------------------


class Account(Struct):
    password: str = "secret"


@dataclass
class DataAccount:
    password: str = "secret"


class ModelAccount(pydantic.BaseModel):
    password: str = "secret"


@attrs.define
class AttrsAccount:
    password: str = "secret"


class TupleAccount(NamedTuple):
    password: str = "secret"


class Order(Struct):
    owner: str | None = None
    tags: list[str] = []
    notes: dict[str, list[int]] = {}
    kind: Literal["a", "b"] = "a"
    at: datetime.datetime | None = None
    pair: tuple[str, int] = ("a", 1)
    anything: Any = None


@dataclass
class DataOrder:
    owner: str
    tags: list[str] = field(default_factory=list)


@attrs.define
class AttrsOrder:
    owner: str


class TypedOrder(TypedDict):
    owner: str


class TupleOrder(NamedTuple):
    owner: str


class OmittingOrder(Struct, omit_defaults=True):
    owner: str = ""


class ArrayOrder(Struct, array_like=True):
    owner: str = ""


class Orders(Struct):
    first: Order
    others: list[Order | DataOrder] = []
    by_name: dict[str, TypedOrder] = {}
    next: Orders | None = None


def misplaced(account: Any) -> list[tuple[Any, Any]]:
    order = Order(owner=account)
    return [
        (Order, order), (Order, Order(tags=[account])), (Order, Order(notes={"a": [account]})),
        (Order, Order(notes=account)), (Order, Order(kind=account)), (Order, Order(at=account)),
        (Order, Order(pair=("a", account))), (Order, {"owner": account}), (DataOrder, DataOrder(account)),
        (DataOrder, DataOrder("a", [account])), (AttrsOrder, AttrsOrder(account)),
        (TypedOrder, {"owner": account}), (TupleOrder, TupleOrder(account)),
        (OmittingOrder, OmittingOrder(account)), (ArrayOrder, ArrayOrder(account)), (Orders, Orders(order)),
        (Orders, Orders(Order(), [DataOrder(account)])),
        (Orders, Orders(Order(), [], {"a": {"owner": account}})),
        (Orders, Orders(Order(), next=Orders(order))), (list[Order], [Order(), order]),
        (dict[str, Order], {"a": order}), (Order | None, order), (Order | str, order), (Order | str, account),
        (list[Order | str], ["a", account]), (tuple[Order, str], (Order(), account)),
        (Order | dict[str, Any], order), (Order | TypedOrder | list[int], [account]),
    ]  # fmt: skip


def asked(model: Any, value: Any, media_type: str, has_status: bool, has_middleware: bool) -> bytes:
    app = App()
    if has_middleware:
        app.middleware(lambda request, next: next(request))

    @app.get("/", response=model, status_code=201 if has_status else None)
    def get() -> Any:
        return value

    with Client(app) as client:
        return client.get("/", headers={"accept": media_type}).content


WAYS = [
    ("application/json", False, False),
    ("application/msgpack", False, False),
    ("application/json", True, True),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "account", [Account(), DataAccount(), ModelAccount(), AttrsAccount(), TupleAccount()]
)
def test_an_object_in_the_place_of_a_plain_value_is_not_sent(
    account: Any, way: tuple[str, bool, bool]
) -> None:
    """hostile 6, its kind: its fields were sent, which nothing declares."""
    for model, value in misplaced(account):
        with pytest.raises(TypeError, match="is not the declared"):
            asked(model, value, *way)


class Kind(enum.StrEnum):
    TOOL = "tool"
    ODD = 'a "toy"'


class Text(str):
    __slots__ = ()


class Kept(Struct):
    text: str
    number: int | float
    when: datetime.date
    span: datetime.timedelta
    key: uuid.UUID
    price: decimal.Decimal
    data: bytes
    kind: Kind
    nested: list[list[int]]
    names: dict[str, str]
    numbers: set[int]
    pair: tuple[int, ...]
    open: dict[str, Any]
    unset: int | msgspec.UnsetType = msgspec.UNSET


KEPT = Kept(
    'a "text"\n', 2**70, datetime.date(2026, 1, 2), datetime.timedelta(1), uuid.UUID(int=1),
    decimal.Decimal("1.50"), b"a", Kind.ODD, [[1], []], {"a": "\u2028"}, {1}, (1, 2), {"any": Account()},
)  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"unset": 5}, {"text": Text("a"), "unset": 5}, {"text": Kind.TOOL, "unset": 5},
        {"number": 1e300, "unset": 5}, {"when": datetime.datetime(2026, 1, 2), "unset": 5},
        {"data": bytearray(b"b"), "unset": 5}, {"nested": ((1,),)}, {"numbers": [3], "unset": 5},
    ],
)  # fmt: skip
def test_plain_values_are_sent_as_msgspec_encodes_them(changes: dict[str, Any]) -> None:
    value = msgspec.structs.replace(KEPT, **changes)
    golden = encode_json(value)
    assert asked(Kept, value, "application/json", False, False) == golden
    assert asked(list[Kept], [value], "application/json", True, True) == b"[%b]" % golden
    if changes.get("unset"):  # the extension leaves fields that are not set to Python
        assert encoded(encoder(Kept), value) == (golden if FAST_PATHS else None)


def test_the_extension_encodes_no_object_in_the_place_of_a_plain_value() -> None:
    declared = encoder(Order)
    for account in (Account(), DataAccount(), ModelAccount(), AttrsAccount(), TupleAccount()):
        for model, value in misplaced(account):
            if model is Order:
                assert declared.encode(value) is None
    assert encoded(declared, Order(anything=Account())) is not None or not FAST_PATHS


class User(Struct):
    name: str


class StoredUser(User):
    password: str = "secret"


class PydanticOrder(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    account: list[User | None]


class Serialized(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    user: Annotated[User, pydantic.PlainSerializer(lambda user: user.name)]


def test_a_class_that_pydantic_does_not_know_is_refused_in_its_models() -> None:
    """hostile 6, its kind: pydantic sends all of it, and so all of a subclass."""
    for model in (PydanticOrder, list[PydanticOrder]):
        with pytest.raises(
            ConfigError, match="PydanticOrder has a field of User, of which pydantic sends"
        ):
            sent(model, PydanticOrder(account=[StoredUser("a")]))
    assert sent(Serialized, Serialized(user=StoredUser("a"))) == {"user": "a"}


# --- what the extension encodes without a copy ----------------------------------------------------


class Number(enum.IntEnum):
    ONE = 1


class Part(Struct, rename={"label": "the label"}):
    label: str
    kind: Kind
    number: Number | None = None


class StoredPart(Part):
    secret: str = "secret"


class Whole(Struct):
    name: Any
    price: Any
    parts: list[Part]
    by_name: dict[str, Part]
    shape: Circle | Square | None
    first: Part | None
    kinds: list[Kind]
    numbers: list[list[float]]


class StoredWhole(Whole):
    secret: str = "secret"


class Later(Part):
    secret: str = "secret"


def encoder(model: Any) -> DeclaredResponse:
    node = node_of(model)
    assert node is not None
    return DeclaredResponse(lambda value: value, status=200, passes_responses=True, node=node)


def encoded(declared: DeclaredResponse, value: Any) -> bytes | None:
    """What the extension makes of it, if this one encodes at all."""
    return declared.encode(value) if FAST_PATHS else None


def some_text(dice: random.Random) -> str:
    letters = 'ab "\\/\n\t\x00\x1f\x7f\u00e9\u2028\U0001f600'
    return "".join(dice.choice(letters) for _ in range(dice.randrange(6)))


def some_value(dice: random.Random) -> Any:
    return dice.choice(
        (
            None, True, dice.getrandbits(66) - 2**65, dice.randrange(-5, 5), some_text(dice),
            some_number(dice), [some_number(dice), some_text(dice)], (1, "a"), {"a": [1]}, [[[1]]], b"bytes",
            datetime.date(2026, 1, 2), Kind.ODD, {1}, Tag("a"), float("inf"), msgspec.UNSET,
        )
    )  # fmt: skip


def some_number(dice: random.Random) -> float:
    decimals = dice.randrange(-3, 7)
    number = dice.randrange(-(10**9), 10**9) / 10**decimals
    return dice.choice((number, 0.0, -0.0, dice.uniform(-1, 1) * 10.0 ** dice.randrange(-20, 25)))


def some_part(dice: random.Random) -> Part:
    cls = dice.choice((Part, StoredPart))
    return cls(some_text(dice), dice.choice(list(Kind)), dice.choice((None, Number.ONE)))


def some_whole(dice: random.Random) -> Whole:
    parts = [some_part(dice) for _ in range(5)]
    return dice.choice((Whole, StoredWhole))(
        name=some_value(dice),
        price=some_value(dice),
        parts=parts[: dice.randrange(3)],
        by_name={some_text(dice): one for one in parts[2:4]},
        shape=dice.choice((None, Circle(1.5), Square(2.25))),
        first=dice.choice((None, parts[4])),
        kinds=[dice.choice(list(Kind))],
        numbers=[[some_number(dice)], []],
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_extension_encodes_as_msgspec_does_a_copy(seed: int) -> None:
    dice = random.Random(seed)
    declared, copy = encoder(list[Whole]), copier(list[Whole])
    assert copy is not None
    for _ in range(100):
        values = [some_whole(dice)]
        made = encoded(declared, values)
        try:
            golden = encode_json(copy(values))
        except (TypeError, ValueError, OverflowError):
            assert made is None
            continue
        assert made is None or made == golden
        if b"UNSET" not in golden and len(msgspec.json.decode(golden)[0]) == 8:
            assert made == (golden if FAST_PATHS else None)


def test_numbers_are_written_as_msgspec_writes_them() -> None:
    dice = random.Random(1)

    class Measured(Struct):
        value: float

    declared = encoder(Measured)
    for _ in range(20_000):
        value = Measured(some_number(dice))
        assert encoded(declared, value) in (None, encode_json(value))
    edges = [0.001, 0.0001, 1e11, 99999999999.99, 0.1 + 0.2, 1 / 3, 123456.7891, 1e-3 + 1e-19]
    for number in edges:
        assert encoded(declared, Measured(number)) in (None, encode_json(Measured(number)))


def test_values_of_another_shape_are_not_encoded() -> None:
    declared = encoder(Page)
    values: list[Any] = [None, {}, [], Product(id=1), Page(cast("Any", (Product(id=1),)))]
    values += [Page(cast("Any", [Tag("a")])), Page(cast("Any", [None]))]
    for value in values:
        assert declared.encode(value) is None


def test_a_class_that_is_changed_is_looked_at_again() -> None:
    declared = encoder(Part)
    later = Later("a", Kind.TOOL)
    golden = b'{"the label":"a","kind":"tool","number":null}'
    assert encoded(declared, later) == (golden if FAST_PATHS else None)
    Later.label = property(lambda self: "b")  # type: ignore[assignment,method-assign]
    assert declared.encode(later) is None


def test_declared_routes_send_status_and_nothing_as_before() -> None:
    app = App()

    @app.post("/parts", status_code=201)
    def create() -> Part:
        return StoredPart("a", Kind.TOOL)

    @app.get("/none")
    async def none() -> Part | None:
        return None

    @app.delete("/parts", status_code=202)
    def delete() -> None:
        return None

    @app.get("/odd")
    def odd() -> Part:
        return cast("Part", "odd")

    with Client(app) as client:
        made = client.post("/parts")
        assert (made.status_code, made.headers["vary"]) == (201, "accept")
        assert made.json() == {"the label": "a", "kind": "tool", "number": None}
        packed = client.post("/parts", headers={"accept": "application/msgpack"})
        assert (packed.status_code, msgspec.msgpack.decode(packed.content)) == (201, made.json())
        assert client.get("/none").status_code == 204
        assert client.delete("/parts").status_code == 202
        with pytest.raises(TypeError, match="is not the declared Part"):
            client.get("/odd")
