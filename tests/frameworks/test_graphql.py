"""Strawberry's GraphQL application: queries, variables, mutations, errors, its page; by GET and by POST."""

from __future__ import annotations

import json

import pytest
from asking import ask
from servers import Pair

pytestmark = pytest.mark.parametrize(
    "pair", [pytest.param(("asgi", "graphql_app:app", (), {}), id="strawberry")], indirect=True
)


def query(pair: Pair, text: str, **variables: object) -> dict[str, object]:
    body = {"query": text, "variables": variables}
    answer = pair.same(lambda server: ask(server, "POST", "/", json=body))
    assert answer.status == 200
    return json.loads(answer.body)


def test_queries(pair: Pair) -> None:
    assert query(pair, "{ books { title readingMinutes } }")["data"]["books"][1] == {
        "title": "Emma", "readingMinutes": 948,
    }  # fmt: skip
    many = query(pair, "query($n: Int!) { books(atLeast: $n) { title } }", n=600)
    assert many["data"] == {"books": [{"title": "Moby-Dick"}]}


def test_mutations(pair: Pair) -> None:
    text = "mutation($t: String!) { add(title: $t, pages: 90) { title } }"
    assert query(pair, text, t="Ü")["data"] == {"add": {"title": "Ü"}}


def test_errors(pair: Pair) -> None:
    assert query(pair, "{ broken }")["errors"][0]["message"] == "no such number"
    assert query(pair, "{ nothing }")["data"] is None
    for body in (b"{", b"[]", b'{"query": ""}'):
        headers = {"content-type": "application/json"}
        answer = pair.same(
            lambda server, body=body: ask(server, "POST", "/", content=body, headers=headers)
        )
        assert answer.status in (200, 400)


def test_by_get_and_its_page(pair: Pair) -> None:
    params = {"query": "{ books { pages } }"}
    assert b"635" in pair.same(lambda server: ask(server, "GET", "/", params=params)).body
    headers = {"accept": "text/html"}
    page = pair.same(lambda server: ask(server, "GET", "/", headers=headers))
    assert b"GraphiQL" in page.body
