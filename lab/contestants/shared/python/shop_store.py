"""The products of the shop, in memory: what lies below the framework, the same for every Python contestant of it.

A contestant brings the class of a product; the store makes objects of it. `shop-axum` has the same in Rust.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, Generic, TypeVar

Product = TypeVar("Product")


class Category(StrEnum):
    tools = "tools"
    toys = "toys"
    books = "books"
    music = "music"


# What X-API-Key may be, and whose products are changed by it. The load has a list of the same.
SELLERS = {f"key-{number:04d}-of-a-seller": f"seller {number}" for number in range(64)}
PRODUCTS = 10_000
# Ids of products that requests create. A new one replaces the oldest when there are too many.
CREATED_FIRST, CREATED_MAX = 1_000_000, 10_000


def seed(number: int) -> dict[str, Any]:
    """Return the product of an id as the shop opens; `lab/workloads/shop.py` has the same rule."""
    half = number <= PRODUCTS // 2
    return {
        "id": number,
        "name": f"Product number {number}",
        "category": list(Category)[number % 3] if half else Category.music,
        "price": number % 500 + 0.5,
        "cost": number % 500 + 0.25,
        "stock": number % 40,
        "tags": [f"tag {number % 7}", f"shelf {number % 90}"],
        "seller": "shop",
    }


class Store(Generic[Product]):
    def __init__(self, make: Callable[..., Product]) -> None:
        self._shelves: dict[Category, dict[int, Product]] = {one: {} for one in Category}
        self._category: dict[int, Category] = {}
        self._created = itertools.count()
        for number in range(1, PRODUCTS + 1):
            fields = seed(number)
            self.put(number, fields["category"], make(**fields))

    def page(self, category: Category, offset: int, limit: int) -> tuple[list[Product], int]:
        shelf = self._shelves[category]
        found: Iterator[Product] = itertools.islice(shelf.values(), offset, offset + limit)
        return list(found), len(shelf)

    def get(self, id: int) -> Product | None:
        category = self._category.get(id)
        return None if category is None else self._shelves[category][id]

    def next_id(self) -> int:
        return CREATED_FIRST + next(self._created) % CREATED_MAX

    def put(self, id: int, category: Category, product: Product) -> None:
        before = self._category.get(id)
        if before is not None and before != category:
            del self._shelves[before][id]
        self._category[id] = category
        self._shelves[category][id] = product

    def remove(self, id: int) -> None:
        category = self._category.pop(id, None)
        if category is not None:
            del self._shelves[category][id]
