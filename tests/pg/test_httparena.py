"""The entry for HttpArena: what its validation asks for, on a table of a few rows, with two workers."""

from __future__ import annotations

import http.client
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from pg_rig import pooled
from rig import wait_for

ENTRY = Path(__file__).parents[2] / "lab" / "httparena" / "citius"
ITEM = {
    "id": 1, "name": "Alpha", "category": "electronics", "price": 30, "quantity": 5,
    "active": True, "tags": ["fast", "new"], "rating": {"score": 42, "count": 127},
}  # fmt: skip
JSON = {"Content-Type": "application/json"}
TABLE = """
CREATE TABLE items (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price INTEGER NOT NULL,
    quantity INTEGER NOT NULL, active BOOLEAN NOT NULL, tags JSONB NOT NULL, rating_score INTEGER NOT NULL,
    rating_count INTEGER NOT NULL
)
"""
ROWS = """
INSERT INTO items SELECT g, 'Alpha ' || g, 'electronics', g, 5, true, '["fast", "new"]', 42, 127
FROM generate_series(1, 40) g
"""


@pytest.fixture(scope="module")
def database(server):
    @pooled
    async def fill(pool) -> None:
        await pool.execute("DROP TABLE IF EXISTS items")
        await pool.execute(TABLE)
        await pool.execute(ROWS)
        await pool.execute("DROP TABLE IF EXISTS fortune")
        await pool.execute("CREATE TABLE fortune (id INTEGER PRIMARY KEY, message TEXT NOT NULL)")
        await pool.execute("INSERT INTO fortune VALUES (1, 'Zeno'), (2, '<script>')")

    fill(server)
    return server.dsn


@pytest.fixture
def ask(serve, database, tmp_path):
    """A function that sends one request on a connection of its own."""
    (tmp_path / "dataset.json").write_text(json.dumps([ITEM | {"id": n} for n in range(1, 51)]))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "reset.css").write_text("a {}")
    variables = {
        "DATABASE_URL": database,
        "DATABASE_MAX_CONN": "4",
        "DATASET_PATH": str(tmp_path / "dataset.json"),
        "STATIC_DIR": str(tmp_path / "files"),
        "CACHE_PATH": str(tmp_path / "cache"),
    }
    serving = serve(ENTRY / "app.py", "--workers", "2", "--compress", "br=2", env=variables)

    def ask(method: str, path: str, body: Any = None, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", serving.port, timeout=20)
        connection.request(
            method, path, body, headers, encode_chunked=not isinstance(body, (bytes, str))
        )
        response = connection.getresponse()
        response.content = response.read()  # type: ignore[attr-defined]
        connection.close()
        return response

    return ask


def test_sums_and_lengths(ask) -> None:
    assert ask("GET", "/baseline11?a=13&b=42").content == b"55"
    assert ask("GET", "/baseline2?a=13&b=42").content == b"55"
    assert ask("POST", "/baseline11?a=13&b=42", b"20").content == b"75"
    chunks = iter([b"2", b"0"])
    chunked = ask("POST", "/baseline11?a=13&b=42", chunks, **{"Transfer-Encoding": "chunked"})
    assert chunked.content == b"75"
    assert ask("POST", "/upload", bytes(3_000_000)).content == b"3000000"
    assert ask("GET", "/pipeline").content == b"ok"
    assert ask("GET", "/static/reset.css").getheader("Content-Type").startswith("text/css")


def test_items_have_their_totals_and_are_compressed_for_who_asks(ask) -> None:
    response = ask("GET", "/json/7?m=3")
    found = json.loads(response.content)
    assert response.getheader("Content-Encoding") is None
    assert found["count"] == len(found["items"]) == 7
    assert found["items"][6] == ITEM | {"id": 7, "total": 30 * 5 * 3}
    packed = ask("GET", "/json/50?m=1", **{"Accept-Encoding": "gzip, br"})
    assert packed.getheader("Content-Encoding") == "br"


def test_rows_between_two_prices(ask) -> None:
    found = json.loads(ask("GET", "/async-db?min=5&max=80&limit=7").content)
    assert found["count"] == len(found["items"]) == 7
    assert found["items"][0]["rating"] == {"score": 42, "count": 127}
    assert found["items"][0]["tags"] == ["fast", "new"]
    assert json.loads(ask("GET", "/async-db?min=9999&max=9999&limit=50").content) == {
        "items": [],
        "count": 0,
    }


def test_a_page_of_a_category(ask) -> None:
    found = json.loads(ask("GET", "/crud/items?category=electronics&page=2&limit=5").content)
    assert [item["id"] for item in found["items"]] == [6, 7, 8, 9, 10]
    assert (found["total"], found["page"], found["limit"]) == (5, 2, 5)


def test_an_item_is_known_to_both_workers_until_it_changes_or_expires(ask) -> None:
    def state() -> str:
        return ask("GET", "/crud/items/12").getheader("X-Cache")

    first_at = time.monotonic()
    # Requests reach either worker; within 200 ms the one that did not ask the database knows the item.
    found = [state() for _ in range(8)]
    if time.monotonic() - first_at < 0.2:
        assert found == ["MISS"] + ["HIT"] * 7
    wait_for(lambda: state() == "MISS", "the end of its 200 ms")
    change = json.dumps({"name": "Updated", "price": 99, "quantity": 1})
    assert ask("PUT", "/crud/items/12", change, **JSON).status == 200
    changed = ask("GET", "/crud/items/12")
    assert changed.getheader("X-Cache") == "MISS"
    assert json.loads(changed.content) == ITEM | {
        "id": 12,
        "name": "Updated",
        "price": 99,
        "quantity": 1,
    }


def test_items_are_made_once_and_those_that_are_not_there_are_said(ask) -> None:
    item = {"id": 200001, "name": "New", "category": "test", "price": 42, "quantity": 7}
    for price in (42, 43):
        assert ask("POST", "/crud/items", json.dumps(item | {"price": price}), **JSON).status == 201
        assert json.loads(ask("GET", "/crud/items/200001").content)["price"] == price
    assert ask("GET", "/crud/items/999999").status == 404
    change = json.dumps({"name": "Updated", "price": 99, "quantity": 1})
    assert ask("PUT", "/crud/items/999999", change, **JSON).status == 404


def test_a_delay(ask) -> None:
    started = time.monotonic()
    assert ask("GET", "/delay/50").content == b"50"
    assert time.monotonic() - started >= 0.05
    assert ask("GET", "/delay/later").status == 404


def test_fortunes_are_sorted_and_escaped(ask) -> None:
    response = ask("GET", "/fortunes")
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    assert re.findall(r"<td>(.*?)</td>", response.content.decode()) == [
        "2", "&lt;script&gt;", "0", "Additional fortune added at request time.", "1", "Zeno",
    ]  # fmt: skip
