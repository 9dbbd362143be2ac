"""Dependencies of procedures: called before, ended after; their parameters are those of the call."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from citius import App, ConfigError, Depends, Request
from citius.testing import Client
from rig import Server, application
from rpc_rig import connect_rpc

APP = application("rpc_dependencies_app")


@pytest.fixture
def server(serve: Any) -> Server:
    return serve(APP, "--rpc", "127.0.0.1:0")


def test_calls(server: Server) -> None:
    with connect_rpc(server) as peer:
        assert peer.call("items", "a")[1] == "a 10+0"
        assert peer.call("items", "a", 5, 2)[1] == "a 5+2"
        assert peer.call("items", "a", "x")[0]["type"] == "InvalidParams"
        assert peer.call("awaited")[1] == "connection 1"
        assert peer.call("awaited", 2)[1] == "connection 2"
        assert peer.call("taken")[1] == ["open", "handler", "closed"] * 2
        assert peer.call("of_both")[1] == "connection session"
        assert peer.call("taken")[1] == ["open", "begin", "end", "closed"]
        assert peer.call("in_thread")[1] == "session"
        assert peer.call("refused")[0]["type"] == "Refused"
        assert peer.call("fails")[0]["type"] == "Failed"
        assert peer.call("taken")[1] == ["begin", "end"] * 2
        assert peer.call("shared", 3)[1] == "10+0 3"


def test_a_function_is_a_route_too(server: Server) -> None:
    assert server.get("/shared?limit=2&n=3").body == b"2+0 3"
    assert server.get("/shared?n=0").status == 422


def needs_request(request: Request) -> str:
    return request.path


def two(limit: str) -> str:
    return limit


def many(*names: str) -> str:
    return "".join(names)


async def awaited() -> str:
    return "awaited"


@pytest.mark.parametrize(
    ("dependency", "expected"),
    [
        (needs_request, "takes the HTTP request"),
        (two, "the parameter limit with two types"),
        (many, r"takes \*names"),
        (awaited, "both `async def`"),
    ],
)
def test_what_can_never_work(dependency: Any, expected: str) -> None:
    app = App()

    @app.rpc(blocking=True, dependencies=[Depends(dependency)])
    def procedure(limit: int, value: Annotated[str, Depends(lambda: "x")]) -> str:
        return value

    with pytest.raises(ConfigError, match=expected):
        Client(app)
