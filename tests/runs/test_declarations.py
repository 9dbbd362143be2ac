"""Declarations of runs that cannot hold end the start, with what to write."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from citius import App, Config, ConfigError, Depends
from citius.testing import Client
from citius.web.security import Bearer, Principal

token = Bearer(lambda given: Principal(given, claims={"number": next(numbers)}))
numbers = itertools.count()


def user(principal: Principal = Depends(token)) -> Principal:
    return principal


async def direct(principal: Principal = Depends(token)) -> AsyncIterator[str]:
    yield principal.id


async def nested(principal: Principal = Depends(user)) -> AsyncIterator[str]:
    yield principal.id


@pytest.mark.parametrize("generator", [direct, nested])
def test_a_security_scheme_needs_an_owner(generator: Callable[..., Any]) -> None:
    """Otherwise all that know the identifier would read what only one may begin."""
    app = App()
    app.run("/answers")(generator)
    with pytest.raises(ConfigError, match="owner="), Client(app):
        pass


@pytest.mark.parametrize("generator", [direct, nested])
def test_with_an_owner_it_holds_for_all(generator: Callable[..., Any]) -> None:
    app = App()
    app.run("/answers", owner=user)(generator)
    with Client(app) as client:
        assert client.post("/answers").status_code == 401
        ann, eve = ({"authorization": f"Bearer {name}"} for name in ("ann", "eve"))
        url = client.post("/answers", headers=ann).json()["url"]
        assert client.get(url).status_code == 401
        assert client.get(url, headers=eve).status_code == 404
        assert client.delete(url, headers=eve).status_code == 404
        assert "data: ann" in client.get(url, headers=ann).text


def test_an_owner_that_is_no_identity_begins_nothing() -> None:
    """The text of an object may be another one in the next request: its run would be lost."""
    app = App()
    app.run("/answers", owner=lambda: object())(direct)
    with Client(app, raise_errors=False) as client:
        assert client.post("/answers", headers={"authorization": "Bearer ann"}).status_code == 500


def test_dependencies_of_the_route_are_enough() -> None:
    app = App()
    app.run("/answers", dependencies=[Depends(token)])(direct)
    with Client(app) as client:
        ann = {"authorization": "Bearer ann"}
        url = client.post("/answers", headers=ann).json()["url"]
        assert client.get(url).status_code == 401
        assert client.delete(url).status_code == 401
        assert client.get(url, headers=ann).status_code == 200


def test_what_is_no_generator() -> None:
    async def plain() -> str:
        return ""

    with pytest.raises(ConfigError, match="no generator"):
        App().run("/answers")(plain)
    with pytest.raises(ConfigError, match=r"app\.serve"):
        App().run(Config())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="rename"):
        App().run("/answers/{run}")(direct)
    with pytest.raises(ConfigError, match="keep_s"):
        App().run("/answers", keep_s=0)(direct)
