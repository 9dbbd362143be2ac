"""Functions beside the handlers of routes send the fields that they declare, or the start fails: issue 32 A4.

Those of uploads, hooks of ``forward`` and handlers of WebSockets sent all fields of what they returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from citius import (
    App,
    ConfigError,
    Response,
    SerialWebSocket,
    Upload,
    WebSocket,
    WebTransportSession,
    json_response,
)
from citius.http import Client as HttpClient
from citius.http.gateway import Forward
from citius.testing import Client
from citius.testing.http import MockReply, MockTransport
from secret_fields import Account, DAccount, DUser, PAccount, PUser, User

SENT: list[tuple[Any, Any, Any]] = [
    (User, Account("ann"), {"name": "ann"}),
    (DUser, DAccount("ann"), {"name": "ann"}),
    (PUser, PAccount(name="ann"), {"name": "ann"}),
    (Sequence[User], [Account("ann")], [{"name": "ann"}]),
    (Mapping[str, PUser | None], {"a": PAccount(name="ann")}, {"a": {"name": "ann"}}),
    (User | Response, Account("ann"), {"name": "ann"}),
    (User, Response(Account("ann"), 201), {"name": "ann"}),
    (User, json_response(Account("ann")), {"name": "ann"}),
]
WHOLE = {"upload-complete": "?1"}


def uploading(annotation: Any, value: Any, directory: Path) -> App:
    app = App()

    async def taken(upload: Upload) -> Any:
        return value

    taken.__annotations__["return"] = annotation
    app.uploads("/files", directory=directory)(taken)
    return app


@pytest.mark.parametrize(("annotation", "value", "sent"), SENT, ids=range(len(SENT)))
def test_uploads(annotation: Any, value: Any, sent: Any, tmp_path: Path) -> None:
    with Client(uploading(annotation, value, tmp_path)) as client:
        assert client.post("/files", content=b"x", headers=WHOLE).json() == sent


def test_uploads_whose_result_is_of_another_type(tmp_path: Path) -> None:
    with Client(uploading(User, {"no": 1}, tmp_path), raise_errors=False) as client:
        assert client.post("/files", content=b"x", headers=WHOLE).status_code == 500


def test_uploads_that_nothing_can_hold(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"test_results_beside_routes.py:\d+.*cannot be held"):
        Client(uploading(Iterator[User], None, tmp_path)).__enter__()


async def hook(*given: Any) -> User | None:
    return Account("ann")


async def refusing(*given: Any) -> Response | None:
    return Response("refused", 403)


def upstream() -> HttpClient:
    mock = MockTransport()
    mock.add("GET", "http://upstream/", MockReply(content="passed on"))
    return HttpClient("http://upstream", transport=mock)


@pytest.mark.parametrize("option", ["on_request", "on_response"])
def test_hooks_of_forwarding(option: str) -> None:
    options: dict[str, Any] = {option: hook}
    app = App()
    app.forward("/", upstream(), **options)
    with pytest.raises(
        ConfigError, match=r"the hook hook .*test_results_beside_routes.py:\d+.*User"
    ):
        Client(app).__enter__()

    app, to = App(), upstream()

    @app.get("/")
    async def handler() -> Any:
        return Forward(to, **options)

    with Client(app) as client, pytest.raises(ConfigError, match="all fields would be sent"):
        client.get("/")


def test_hooks_that_return_responses() -> None:
    app = App()
    app.forward("/", upstream(), on_request=refusing)
    with Client(app) as client:
        assert client.get("/").status_code == 403


async def talk(socket: WebSocket) -> User | None: ...


def talk_in_a_thread(socket: SerialWebSocket) -> list[PUser]: ...  # type: ignore[empty-body]


async def talk_by_webtransport(session: WebTransportSession) -> DUser | None: ...


@pytest.mark.parametrize(
    ("declare", "handler"),
    [
        (App.websocket, talk),
        (App.websocket, talk_in_a_thread),
        (App.webtransport, talk_by_webtransport),
    ],
    ids=["async", "def", "session"],
)
def test_handlers_of_sockets(declare: Callable[..., Any], handler: Callable[..., Any]) -> None:
    app = App()
    declare(app, "/")(handler)
    with pytest.raises(
        ConfigError, match=rf"{handler.__name__} .*test_results_beside_routes.py:\d+.*a Response"
    ):
        Client(app).__enter__()
