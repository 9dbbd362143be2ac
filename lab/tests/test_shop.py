"""The shop: requests of which no two are alike, and what refuses a wrong response to one of them."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from citius_lab import paths
from citius_lab.definitions import contestants
from citius_lab.definitions.workloads import Mixed, Response, WrongResponse, contract

CASE = contract().cases["shop"]
CODE: Any = contract().workloads["shop"].code
REQUESTS = CASE.requests(random.Random(1))


def kind(one: Mixed) -> str:
    if one.method != "POST":
        return one.method
    key = dict(one.headers)["X-API-Key"]
    return "wrong key" if key not in CODE.KEYS else "bad" if b"faulty" in one.body else "POST"


FIRST = {kind(one): one for one in reversed(REQUESTS)}


def right(one: Mixed) -> Response:
    """The response that a shop without faults sends."""
    if kind(one) == "wrong key":
        return Response(401, "application/json", b"{}", 0.01)
    if kind(one) == "bad":
        return Response(422, "application/json", b"the price or the category is wrong", 0.01)
    if one.method == "DELETE":
        return Response(204, "", b"", 0.01)
    if one.method == "GET" and "?" in one.target:
        found = CODE.page(one.target)
    elif one.method == "GET":
        found = CODE.seed(int(one.target.rpartition("/")[2]))
    else:
        found = json.loads(one.body)
        del found["cost"]
        found["seller"] = CODE.KEYS[dict(one.headers)["X-API-Key"]]
        is_new = one.method == "POST"
        found["id"] = CODE.CREATED_FIRST if is_new else int(one.target.rpartition("/")[2])
    status = 201 if one.method == "POST" else 200
    return Response(status, "application/json", json.dumps(found).encode(), 0.01)


def test_no_two_requests_are_alike() -> None:
    assert len({(one.method, one.target, one.headers, one.body) for one in REQUESTS}) == 2000
    assert CASE.requests(random.Random(1)) == REQUESTS


def test_requests_are_of_all_kinds() -> None:
    found = Counter(map(kind, REQUESTS))
    assert found == {
        "GET": 1200, "POST": 240, "PUT": 240, "DELETE": 120, "wrong key": 100, "bad": 100,
    }  # fmt: skip


def test_accepts_right_responses() -> None:
    for one in REQUESTS:
        CASE.check_mixed(right(one), one)


@pytest.mark.parametrize("name", sorted(FIRST))
def test_refuses_wrong_responses(name: str) -> None:
    one = FIRST[name]
    response = right(one)
    wrong = [replace(response, status=500)]
    if response.status in {200, 201}:
        found = json.loads(response.body)
        wrong += [
            replace(response, body=json.dumps(found | {"cost": 1.5}).encode()),
            replace(response, body=b"{}"),
            replace(response, content_type="text/plain"),
        ]
    for other in wrong:
        with pytest.raises(WrongResponse):
            CASE.check_mixed(other, one)


def test_what_clients_must_not_see_is_missed_within_a_page() -> None:
    one = next(one for one in REQUESTS if "?" in one.target)
    found = json.loads(right(one).body)
    found["items"][3]["cost"] = 1.5
    with pytest.raises(WrongResponse):
        CASE.check_mixed(replace(right(one), body=json.dumps(found).encode()), one)


def test_a_request_of_a_mix_has_its_own_method_and_content() -> None:
    one = Mixed("/a", method="PUT", body=b"{}", headers=(("A", "b"),))
    asked = one.within(CASE)
    assert (asked.method, asked.body, asked.headers) == ("PUT", b"{}", (("A", "b"),))
    assert Mixed("/a").within(CASE) == CASE


def test_lines_of_an_application_are_counted_without_blank_ones_and_comments() -> None:
    found = contestants.load([paths.lab_root() / "contestants"])
    counted = found["shop-citius"].app_lines()
    text = (found["shop-citius"].source / "app.py").read_text()
    assert counted == sum(bool(line.strip()) for line in text.splitlines())
    assert found["citius"].app_lines() is None
