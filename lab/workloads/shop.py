"""A small shop: which requests it gets, no two alike, and which responses are right.

Clients may see what a product costs them, not what it cost the shop. Lists and single products are of ids
that nothing changes. The others are changed by requests that may come in any order and any number of times,
so a response does not depend on what was requested before: a product that is changed gets the same content
each time, and one that is deleted is gone, whether it was there or not (204). Only the id of one that is
created depends on the others; it always has seven digits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, WrongResponse, expect, short

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response


def seed(number: int) -> dict[str, Any]:
    """Return the product of an id as the shop opens, as a client sees it."""
    half = number <= PRODUCTS // 2
    return {
        "id": number,
        "name": f"Product number {number}",
        "category": CATEGORIES[number % 3] if half else "music",
        "price": number % 500 + 0.5,
        "stock": number % 40,
        "tags": [f"tag {number % 7}", f"shelf {number % 90}"],
        "seller": "shop",
    }


def page(target: str) -> dict[str, Any]:
    """Return the page of products that a target asks for."""
    query = parse_qs(urlsplit(target).query)
    category, offset, limit = query["category"][0], int(query["offset"][0]), int(query["limit"][0])
    first = CATEGORIES.index(category) or 3
    numbers = range(first, PRODUCTS // 2 + 1, 3)
    items = [seed(number) for number in numbers[offset : offset + limit]]
    return {"items": items, "limit": limit, "offset": offset, "total": len(numbers)}


def check(response: Response, target: str) -> None:
    """Compare a single product."""
    expect(f"shop, {target}", seed(int(target.rpartition("/")[2])), _object(response))


def probe(random: random.Random) -> str:
    """Return a target of a product that nothing changes."""
    return f"/products/{random.randrange(1, PRODUCTS // 2)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return requests of which no two are alike, in the shares of ``KINDS``."""
    makers = [maker for maker, share in KINDS for _ in range(REQUESTS * share // 100)]
    random.shuffle(makers)
    return [maker(random, number) for number, maker in enumerate(makers)]


def check_mixed(response: Response, one: Mixed) -> None:
    """Compare status and content with the golden ones; refusals with what all frameworks have in common."""
    path = urlsplit(one.target).path
    key = dict(one.headers).get("X-API-Key")
    if key is not None and key not in KEYS:
        expect("shop, a wrong key", 401, response.status)
    elif one.method == "DELETE":
        expect("shop, deleted", (204, b""), (response.status, response.body))
    elif one.method == "GET":
        expect(f"shop, {one.target}", 200, response.status)
        golden = page(one.target) if path == "/products" else seed(int(path.rpartition("/")[2]))
        expect(f"shop, {one.target}", golden, _object(response))
    elif b"faulty" in one.body:
        _check_refusal(response, json.loads(one.body))
    else:
        _check_product(response, one, path)


def _check_refusal(response: Response, draft: dict[str, Any]) -> None:
    """A body that is no product is refused with 422 or 400, and the field at fault is named."""
    if response.status not in {400, 422}:
        raise WrongResponse(f"shop, a bad body: expected 400 or 422, got {response.status}")
    field = "price" if isinstance(draft["price"], str) or draft["price"] <= 0 else "category"
    words = {field, *CATEGORIES} if field == "category" else {field}
    if not any(word in response.body.decode() for word in words):
        raise WrongResponse(f"shop, a bad body: expected {field} in {short(response.body)}")


def _check_product(response: Response, one: Mixed, path: str) -> None:
    is_new = one.method == "POST"
    expect(f"shop, {one.method} {path}", 201 if is_new else 200, response.status)
    found = _object(response)
    golden = json.loads(one.body)
    del golden["cost"]
    golden["seller"] = KEYS[dict(one.headers)["X-API-Key"]]
    golden["id"] = found.get("id") if is_new else int(path.rpartition("/")[2])
    expect(f"shop, {one.method} {path}", golden, found)
    if is_new and not CREATED_FIRST <= found["id"] < CREATED_FIRST + CREATED_MAX:
        raise WrongResponse(f"shop, a new product has the id {found['id']!r}")


def _object(response: Response) -> dict[str, Any]:
    expect("shop, content type", "application/json", response.content_type)
    try:
        found: dict[str, Any] = json.loads(response.body)
    except ValueError:
        raise WrongResponse(f"shop: expected JSON, got {short(response.body)}") from None
    return found


# --- the requests ---------------------------------------------------------------------------------


def _client(random: random.Random, *, key: str | None = None) -> tuple[tuple[str, str], ...]:
    fields = (
        ("Accept", "application/json"),
        ("User-Agent", f"shop-client/2.{random.randrange(20)} (linux; x86_64)"),
        ("X-Request-Id", f"{random.getrandbits(128):032x}"),
    )
    if key is None:
        return fields
    return (*fields, ("Content-Type", "application/json"), ("X-API-Key", key))


def _seller(random: random.Random) -> tuple[tuple[str, str], ...]:
    return _client(random, key=random.choice(list(KEYS)))


def _draft(random: random.Random, number: int, **other: object) -> bytes:
    draft = {
        "name": f"A thing of {random.getrandbits(32):08x}",
        "category": "music",
        "price": random.randrange(1, 100_000) / 4,
        "cost": random.randrange(1, 1000) / 4,
        "stock": number,
        "tags": [f"tag {random.randrange(100)}" for _ in range(random.randrange(5))],
    }
    return json.dumps(draft | other, separators=(",", ":")).encode()


def _list(random: random.Random, number: int) -> Mixed:
    category = random.choice(CATEGORIES[:3])
    limit = random.randrange(5, 25)
    target = f"/products?category={category}&offset={number % 400}&limit={limit}"
    return Mixed(target, headers=_client(random), method="GET")


def _get(random: random.Random, number: int) -> Mixed:
    return Mixed(f"/products/{number + 1}", headers=_client(random), method="GET")


def _create(random: random.Random, number: int) -> Mixed:
    body = _draft(random, number)
    return Mixed("/products", headers=_seller(random), method="POST", body=body, is_stable=False)


def _update(random: random.Random, number: int) -> Mixed:
    target = f"/products/{PRODUCTS // 2 + 1 + number}"
    return Mixed(target, headers=_seller(random), method="PUT", body=_draft(random, number))


def _delete(random: random.Random, number: int) -> Mixed:
    target = f"/products/{CREATED_FIRST + number * CREATED_MAX // REQUESTS}"
    return Mixed(target, headers=_seller(random), method="DELETE")


def _wrong_key(random: random.Random, number: int) -> Mixed:
    headers = _client(random, key=f"key-{number:04d}-of-a-thief")
    return Mixed("/products", headers=headers, method="POST", body=_draft(random, number))


def _bad_body(random: random.Random, number: int) -> Mixed:
    wrong = random.choice(({"price": "cheap"}, {"price": -1.0}, {"category": "cars"}))
    body = _draft(random, number, name="faulty", **wrong)
    return Mixed("/products", headers=_seller(random), method="POST", body=body, is_stable=False)


CATEGORIES = ("tools", "toys", "books", "music")
PRODUCTS = 10_000
CREATED_FIRST, CREATED_MAX = 1_000_000, 10_000
KEYS = {f"key-{number:04d}-of-a-seller": f"seller {number}" for number in range(64)}
# More than servers keep of the requests they have seen.
REQUESTS = 2000
# In percent.
KINDS = (
    (_list, 20),
    (_get, 40),
    (_create, 12),
    (_update, 12),
    (_delete, 6),
    (_wrong_key, 5),
    (_bad_body, 5),
)
