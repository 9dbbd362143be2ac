"""HttpArena's service over the items of ``arena.sql``: requests, and which responses are right."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from citius_lab.definitions.workloads import Mixed, code_of, expect

if TYPE_CHECKING:
    import random

    from citius_lab.definitions.workloads import Response

rows = code_of("arena-async-db")
item = rows.item


def check(answer: Response, target: str) -> None:
    """Compare a single item."""
    expect(f"arena-crud, {target}", item(int(target.rpartition("/")[2])), rows.parsed(answer))


def check_mixed(answer: Response, one: Mixed) -> None:
    """Compare a response to a request of the mix."""
    found = rows.parsed(answer)
    if one.method in ("PUT", "POST"):
        given = json.loads(one.body)
        expect(
            f"arena-crud, {one.method}, status", 201 if one.method == "POST" else 200, answer.status
        )
        expect(f"arena-crud, {one.method}", given, {name: found.get(name) for name in given})
    elif "?" in one.target:
        _check_page(found, one.target)
    elif one.golden:
        golden = item(int(one.target.rpartition("/")[2])) | {"name": one.golden}
        expect("arena-crud, after an update", golden, found)
    else:
        check(answer, one.target)


def _check_page(found: dict[str, Any], target: str) -> None:
    query = parse_qs(urlsplit(target).query)
    page, limit = (int(query[name][0]) for name in ("page", "limit"))
    place = rows.CATEGORIES.index(query["category"][0])
    numbers: list[int] = [
        number for number in range(1, 8 * page * limit + 8) if number % 8 == place
    ]
    golden: list[dict[str, Any]] = [
        item(number) for number in numbers[(page - 1) * limit : page * limit]
    ]
    whole = {"items": golden, "total": limit, "page": page, "limit": limit}
    expect(f"arena-crud, {target}", whole, found)


def probe(random: random.Random) -> str:
    """Return the target of a random item."""
    return f"/crud/items/{random.randrange(1, 50_001)}"


def requests(random: random.Random) -> list[Mixed]:
    """Return requests in HttpArena's shares, behind updates that are seen by the next read."""
    found = _changes(random.randrange(60_000, 90_000))
    for number in range(REQUESTS):
        id, kind = random.randrange(1, 50_001), number % 20
        if kind < 15:
            found.append(Mixed(f"/crud/items/{id}"))
        elif kind < 18:
            found.append(_update(id, item(id)["name"]))
        elif kind == 18:
            page = random.randrange(1, 11)
            found.append(Mixed(f"/crud/items?category=office&page={page}&limit=10"))
        else:
            found.append(_create(100_001 + number))
    return found


def _changes(id: int) -> list[Mixed]:
    """Return a read, an update, a read that sees it, and the way back; only the checks ask them."""
    name = item(id)["name"]
    return [
        _read(id, name),
        _update(id, "changed", weight=0),
        _read(id, "changed"),
        _update(id, name, weight=0),
        _read(id, name),
    ]


def _read(id: int, name: str) -> Mixed:
    return Mixed(f"/crud/items/{id}", weight=0, golden=name)


def _update(id: int, name: str, weight: int = 1) -> Mixed:
    golden = item(id)
    values = {"name": name, "price": golden["price"], "quantity": golden["quantity"]}
    body = json.dumps(values).encode()
    return Mixed(f"/crud/items/{id}", weight, headers=JSON, method="PUT", body=body)


def _create(id: int) -> Mixed:
    values = {"id": id, "name": "New Product", "category": "test", "price": 25, "quantity": 10}
    body = json.dumps(values).encode()
    return Mixed("/crud/items", headers=JSON, method="POST", body=body)


JSON = (("Content-Type", "application/json"),)
REQUESTS = 2000
