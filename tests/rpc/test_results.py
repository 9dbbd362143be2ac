"""Declared results of procedures: the declared fields are sent, whatever the function returns."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest
from citius import App, ConfigError
from citius.testing import Client
from rig import application
from rpc_rig import connect_rpc

APP = application("rpc_results_app")
ANN = {"name": "ann"}
RESULTS: dict[str, object] = {
    "plain": ANN,
    "awaited": {"one": ANN},
    "blocking": ANN,
    "model": [ANN],
    "depends": ANN,
    "depends_awaited": ANN,
    "depends_blocking": ANN,
    "nothing": None,
}
if find_spec("greenlet"):
    RESULTS["serial"] = ANN


def test_declared_fields(serve: Any) -> None:
    """Issue A4: results of procedures were sent whole."""
    with connect_rpc(serve(APP, "--rpc", "127.0.0.1:0")) as peer:
        found = {name: peer.call(name)[1] for name in RESULTS}
        assert found == RESULTS
        assert peer.call("named", "ann")[1] == [ANN]
        assert peer.call("many", "ann", "bob")[1] == [ANN, {"name": "bob"}]


class User(msgspec.Struct):
    name: str


def test_what_cannot_be_filtered_is_refused() -> None:
    def stream() -> Iterator[User]:
        yield User("ann")

    def unknown() -> type[User]:
        return User

    for function, said in ((stream, "return a list"), (unknown, "cannot be held")):
        app = App()
        app.rpc("p")(function)
        with pytest.raises(
            ConfigError, match=rf"{function.__name__} .*test_results.py:\d+.*{said}"
        ):
            Client(app).__enter__()
