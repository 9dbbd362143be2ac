"""A gateway before servers that do what a test says."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from gateway_rig import Before, echo
from http_peer import Peer
from rig import application

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from http_peer import Talk

APP = application("gateway_app")


@pytest.fixture
def gateway(serve) -> Iterator[Callable[..., Before]]:
    with ExitStack() as stack:

        def start(
            *acts: Callable[[Talk], object], options: tuple[str, ...] = (), **env: str
        ) -> Before:
            peers = [stack.enter_context(Peer(act)) for act in acts or (echo,)]
            urls = " ".join(f"http://127.0.0.1:{peer.port}" for peer in peers)
            server = serve(APP, "--workers", "1", *options, env={"UPSTREAMS": urls, **env})
            return Before(server, peers)

        yield start
