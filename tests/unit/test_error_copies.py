"""Errors are pickled and copied whatever parameters their classes have (hostile 3)."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from citius import HTTPError, NotFound, UnprocessableContent
from citius.errors import ClientDisconnected, ConfigError


class OutOfStock(HTTPError):
    """Parameters of its own."""

    def __init__(self, item: str, *, left: int) -> None:
        super().__init__(409, f"{left} of {item}", {"retry-after": "1"})
        self.item = item


class Missing(NotFound):
    def __init__(self, kind: str, number: int) -> None:
        super().__init__(f"no {kind} {number}")


class Left(ClientDisconnected):
    def __init__(self, *, why: str) -> None:
        super().__init__(104, why)
        self.why = why


def pickled(error: Exception) -> Exception:
    return pickle.loads(pickle.dumps(error))


@pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        HTTPError(404, "detail", {"a": "b"}, [{"field": "x"}]),
        NotFound("detail", {"a": "b"}),
        UnprocessableContent(errors=[{"field": "x"}]),
        OutOfStock("pens", left=3),
        Missing("pen", 3),
        Left(why="gone"),
        ClientDisconnected(104, "gone"),
        ConfigError("port"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_is_equal(error: Any, copied: Callable[[Any], Any]) -> None:
    again = copied(error)
    assert type(again) is type(error)
    assert (again.args, str(again), vars(again)) == (error.args, str(error), vars(error))


def test_an_error_of_a_class_keeps_its_status() -> None:
    again = copy.copy(NotFound("detail"))
    assert isinstance(again, NotFound)
    assert (again.status_code, again.detail, again.args) == (404, "detail", (404, "detail"))
