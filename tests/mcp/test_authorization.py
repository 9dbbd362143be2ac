"""Authorization: tokens by the application's schemes, metadata (RFC 9728), challenges that name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from citius import App, Depends, Request, Response, Unauthorized
from citius.errors import ConfigError
from citius.mcp import Authorization
from citius.testing import Client
from citius.web.security import Bearer, Principal
from mcp_rig import SESSIONS, VERSIONS, Session

TOKENS = {
    "good": Principal("ann", frozenset({"notes:read", "notes:write"})),
    "other": Principal("cid", frozenset({"notes:read"})),
    "weak": Principal("bob", frozenset({"notes:list"})),
}


def look_up(token: str) -> Principal | None:
    return TOKENS.get(token)


async def look_up_later(token: str) -> Principal | None:
    return TOKENS.get(token)


tokens = Bearer(look_up)
app = App()
mcp = app.mcp(
    "/mcp",
    authorization=Authorization(
        scheme=tokens, servers=["https://auth.example.com"], scopes=["notes:read"],
        documentation="https://example.com/docs",
    ),
)  # fmt: skip
awaited = app.mcp(
    "/awaited",
    authorization=Authorization(
        scheme=Bearer(look_up_later), servers=["https://auth.example.com"],
        resource="https://api.example.com/v1/awaited",
    ),
)  # fmt: skip
guarded = app.mcp("/guarded", dependencies=[Depends(tokens)])


@mcp.tool
def whoami(principal: Annotated[Principal, Depends(tokens)]) -> str:
    return principal.id


@awaited.tool
@guarded.tool
def hello() -> str:
    return "hello"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(app, raise_errors=False) as client:
        yield client


PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def post(client: Client, path: str, token: str | None = None) -> Any:
    headers = {"content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return client.post(path, content=PING, headers=headers)


def test_the_metadata_of_the_resource(client: Client) -> None:
    reply = client.get("/.well-known/oauth-protected-resource/mcp")
    assert reply.status_code == 200
    assert reply.headers["access-control-allow-origin"] == "*"
    assert reply.json() == {
        "resource": "http://testserver/mcp",
        "authorization_servers": ["https://auth.example.com"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["notes:read"],
        "resource_documentation": "https://example.com/docs",
    }
    said = client.get("/.well-known/oauth-protected-resource/awaited").json()
    assert said["resource"] == "https://api.example.com/v1/awaited"


def test_refusals_say_where_to_get_a_token(client: Client) -> None:
    url = "http://testserver/.well-known/oauth-protected-resource/mcp"
    missing = post(client, "/mcp")
    assert missing.status_code == 401
    assert missing.headers["www-authenticate"] == (
        f'Bearer resource_metadata="{url}", scope="notes:read"'
    )
    wrong = post(client, "/mcp", "bad")
    assert wrong.status_code == 401
    assert wrong.headers["www-authenticate"] == (
        f'Bearer error="invalid_token", resource_metadata="{url}", scope="notes:read"'
    )
    weak = post(client, "/mcp", "weak")
    assert weak.status_code == 403
    assert weak.headers["www-authenticate"] == (
        f'Bearer error="insufficient_scope", resource_metadata="{url}", scope="notes:read"'
    )
    later = post(client, "/awaited")
    assert later.status_code == 401
    assert later.headers["www-authenticate"] == (
        'Bearer resource_metadata="https://api.example.com/.well-known/oauth-protected-resource/v1/awaited"'
    )
    for method in (client.get, client.delete):
        assert method("/mcp").status_code == 401


@pytest.mark.parametrize("version", VERSIONS)
def test_tokens_that_are_good(client: Client, version: str) -> None:
    fields = {"authorization": "Bearer good"}
    assert Session(client, version, headers=fields).text("whoami") == "ann"
    for path in ("/awaited", "/guarded"):
        assert Session(client, version, path=path, headers=fields).text("hello") == "hello"


@pytest.mark.parametrize("path", ["/mcp", "/awaited"])
@pytest.mark.parametrize("version", SESSIONS)
def test_a_session_is_of_who_began_it(client: Client, version: str, path: str) -> None:
    session = Session(client, version, path=path, headers={"authorization": "Bearer good"})
    for token, status in (("good", 200), ("other", 404), ("good", 200)):
        fields = {"mcp-session-id": session.session or "", "authorization": f"Bearer {token}"}
        headers = {**fields, "content-type": "application/json"}
        assert client.post(path, content=PING, headers=headers).status_code == status
        if status == 404:
            stream = {**fields, "accept": "text/event-stream"}
            assert client.get(path, headers=stream).status_code == 404
            assert client.delete(path, headers=fields).status_code == 404


def test_a_dependency_protects_as_it_does_routes(client: Client) -> None:
    refused = post(client, "/guarded")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


def test_lists_of_a_protected_server_are_private(client: Client) -> None:
    fields = {"authorization": "Bearer good"}
    for path in ("/mcp", "/guarded"):
        session = Session(client, path=path, headers=fields)
        assert session.result("tools/list")["cacheScope"] == "private"


def test_below_a_prefix() -> None:
    inner, outer = App(), App()
    inner.mcp(
        "/mcp", authorization=Authorization(scheme=tokens, servers=["https://auth.example.com"])
    )
    outer.mount("/inner", inner)
    with Client(outer) as client:
        refused = post(client, "/inner/mcp")
        url = refused.headers["www-authenticate"].partition('"')[2].rstrip('"')
        path = url.removeprefix("http://testserver")
        assert client.get(path).json()["resource"] == "http://testserver/inner/mcp"


def test_what_cannot_hold() -> None:
    cases: list[dict[str, Any]] = [
        {"scheme": tokens, "servers": []},
        {"scheme": tokens, "servers": "https://auth.example.com"},
        {"scheme": tokens, "servers": ["auth.example.com"]},
        {"scheme": tokens, "servers": ["https://auth.example.com#x"]},
        {"scheme": "bearer", "servers": ["https://auth.example.com"]},
        {"scheme": tokens, "servers": ["https://auth.example.com"], "resource": "/mcp"},
    ]
    for options in cases:
        with pytest.raises(ConfigError):
            Authorization(**options)


def test_the_command_that_lists_routes_shows_the_guard() -> None:
    (endpoint, *_) = [one for one in app.endpoints if one.pattern == "/mcp"]
    assert [(one.name, one.scopes) for one in endpoint.guards] == [("bearer", ("notes:read",))]


def test_handlers_of_exceptions_see_refusals() -> None:
    own = App()
    own.mcp(
        "/mcp", authorization=Authorization(scheme=tokens, servers=["https://auth.example.com"])
    )
    found: list[str] = []

    @own.exception_handler(Unauthorized)
    def refused(request: Request, error: Unauthorized) -> Response:
        found.append(str(error.headers))
        return Response("who?", 401)

    with Client(own) as client:
        assert post(client, "/mcp").text == "who?"
    assert "resource_metadata=" in found[0]
