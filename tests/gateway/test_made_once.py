"""Rooms and broadcasts asked for again by name: other options are an error, none are no question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from citius import App, ConfigError


def told(missed: int) -> str:
    return str(missed)


def other(missed: int) -> str:
    return f"missed {missed}"


ROOMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a history": ({}, {"history": 10}),
    "another history": ({"history": 10}, {"history": 11}),
    "members that miss": ({}, {"slow": "drop"}),
    "gaps told": ({}, {"on_gap": told}),
    "gaps told otherwise": ({"on_gap": told}, {"on_gap": other}),
    "gaps told of a history": ({"history": 10}, {"on_gap": told}),
}
BROADCASTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a history": ({}, {"history": 10}),
    "no heartbeat": ({}, {"heartbeat_s": None}),
    "another heartbeat": ({"heartbeat_s": 1.0}, {"heartbeat_s": 2.0}),
    "a shorter queue": ({}, {"queue_bytes_max": 1024}),
    "readers that miss": ({}, {"slow": "drop"}),
}
MAKERS: dict[str, Callable[[App], Callable[..., object]]] = {
    "room": lambda app: app.room,
    "broadcast": lambda app: app.broadcast,
}
CASES = [("room", *pair) for pair in ROOMS.items()] + [
    ("broadcast", *pair) for pair in BROADCASTS.items()
]


@pytest.mark.parametrize(("kind", "_name", "options"), CASES)
def test_other_options_are_refused(
    kind: str, _name: str, options: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    make = MAKERS[kind](App())
    first, second = options
    made = make("one", **first)
    (option,) = second
    with pytest.raises(
        ConfigError, match=rf"app\.{kind}\('one'\) \(.*test_made_once.py.*{option}="
    ):
        make("one", **second)
    assert make("one") is made
    assert make("one", **first) is made
    assert make("two", **second) is not made


def test_a_lambda_in_a_handler_is_the_same_one_in_each_call() -> None:
    app = App()

    def handle() -> object:
        return app.room("one", on_gap=lambda missed: f"missed {missed}")

    assert handle() is handle()
