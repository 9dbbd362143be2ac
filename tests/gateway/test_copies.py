"""Copies of records: the same responses as by ``msgspec.convert``, and no field that is not declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, cast

import msgspec
import pytest
from citius import App
from citius.testing import Client
from citius.web import results
from citius.web.copies import Unfit, copier
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
    """In place of `copier`."""


@pytest.mark.parametrize(("model", "value"), VALUES)
def test_copies_are_what_msgspec_converts(
    model: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = sent(model, value)
    assert "secret" not in str(found)
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
