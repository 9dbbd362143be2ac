"""The transport: every mistake of a client is the error that the specification has for it, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest
from citius import App, Request
from citius.mcp import Context
from citius.testing import Client
from mcp_rig import META, SESSIONS, STATELESS, VERSIONS, Session, messages_of
from rig import wait_for

app = App()
mcp = app.mcp("/mcp", name="tests", version="1.2.3", instructions="Be brief.", cache_s=60)
empty = app.mcp("/empty")
open_to_pages = app.mcp("/pages", origins=["https://app.example.com"], hosts=["api.example.com"])


@mcp.tool
def echo(text: str) -> str:
    """Say it again."""
    return text


@mcp.tool(headers={"region": "Region", "count": "Count"})
def routed(region: str = "", count: int = 0) -> str:
    return f"{region} {count}"


@mcp.tool
async def reports(context: Context) -> str:
    await context.progress(1, 2, "half")
    await context.info("halfway")
    return "done"


@open_to_pages.tool
def page() -> str:
    return "page"


@pytest.fixture(scope="module")
def client():
    with Client(app, raise_errors=False) as client:
        yield client


@pytest.fixture(params=VERSIONS)
def session(request: pytest.FixtureRequest, client: Client) -> Session:
    return Session(client, request.param)


JSON = {"content-type": "application/json"}


def post(client: Client, body: bytes, **fields: str) -> Any:
    headers = JSON | {name.replace("_", "-"): value for name, value in fields.items()}
    return client.post("/mcp", content=body, headers=headers)


def code_of(reply: Any) -> int:
    return reply.json()["error"]["code"]


def test_what_it_says_of_itself(client: Client) -> None:
    for version in SESSIONS:
        said = Session(client, version).server
        assert said["serverInfo"] == {"name": "tests", "version": "1.2.3"}
        assert said["instructions"] == "Be brief."
        assert said["capabilities"] == {"logging": {}, "tools": {}}
    result = Session(client).result("server/discover")
    assert result["supportedVersions"] == [STATELESS]
    assert result["_meta"][META + "serverInfo"] == {"name": "tests", "version": "1.2.3"}
    assert (result["ttlMs"], result["cacheScope"]) == (60_000, "public")


def test_an_unknown_version_gets_another(client: Client) -> None:
    params: dict[str, Any] = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {}}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    reply = post(client, json.dumps(body).encode())
    assert reply.json()["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("version", ["", *SESSIONS, STATELESS])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b'"\\ud800"', -32700),
        (b"[" * 100_000, -32700),
        (b"1" * 10_000, -32700),
        (b"null", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}', -32602),
    ],
)
def test_what_is_no_message(client: Client, version: str, body: bytes, code: int) -> None:
    reply = post(client, body, **({"mcp-protocol-version": version} if version else {}))
    assert code_of(reply) == code, reply.text
    assert reply.status_code == (200 if code == -32602 and version != STATELESS else 400)


def test_errors_have_the_identifier(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"other"}}'
    assert post(client, body).json()["id"] == "x"
    assert post(client, b'{"jsonrpc":"1.0","id":5,"method":"ping"}').json()["id"] == 5
    assert post(client, b'{"jsonrpc":"2.0","id":null,"method":"ping"}').json()["id"] is None


def test_unknown_methods(session: Session) -> None:
    for method in ("other", "prompts/list", "resources/read", "completion/complete"):
        reply = session.send(method)
        assert code_of(reply) == -32601
        assert reply.status_code == (404 if session.version == STATELESS else 200)
    for method in ("initialize", "ping", "logging/setLevel"):
        if session.version == STATELESS:
            assert session.send(method).status_code == 404
    reply = session.send("server/discover")
    assert reply.status_code == 200
    assert ("error" in reply.json()) is (session.version != STATELESS)


def test_notifications_have_no_response(session: Session) -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "notifications/other"):
        reply = session.post({"jsonrpc": "2.0", "method": method})
        assert (reply.status_code, reply.content) == (202, b"")


def test_lists_have_one_page(session: Session) -> None:
    assert session.error("tools/list", {"cursor": "x"})["code"] == -32602
    result = session.result("tools/list")
    assert [one["name"] for one in result["tools"]] == ["echo", "routed", "reports"]
    assert ("ttlMs" in result) is (session.version == STATELESS)


def test_media_types(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for media_type in ("application/json; charset=utf-8", "Application/JSON"):
        assert (
            client.post("/mcp", content=body, headers={"content-type": media_type}).status_code
            == 200
        )
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/msgpack"):
        assert (
            client.post("/mcp", content=body, headers={"content-type": media_type}).status_code
            == 415
        )


def test_a_client_that_takes_no_stream_gets_the_result(client: Client) -> None:
    params = {"name": "reports", "arguments": {}, "_meta": {"progressToken": 1}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    reply = post(client, json.dumps(body).encode(), accept="application/json")
    assert reply.json()["result"]["content"][0]["text"] == "done"
    reply = post(client, json.dumps(body).encode(), accept="text/event-stream, application/json")
    assert [one.get("method") for one in messages_of(reply)] == [
        "notifications/progress", "notifications/message", None,
    ]  # fmt: skip


# --- what a stateless request says ---------------------------------------------------------------------


def test_a_stateless_request_says_what_it_needs(client: Client) -> None:
    session = Session(client)
    message = session.message("tools/call", {"name": "echo", "arguments": {"text": "x"}}, {})
    headers = session.headers(message)

    def sent(meta: dict[str, Any] | None, **fields: str | None) -> Any:
        changed = {name.replace("_", "-"): value for name, value in fields.items()}
        kept = {n: v for n, v in (headers | changed).items() if v is not None}
        params = {**message["params"], "_meta": meta} if meta is not None else {"name": "echo"}
        body = json.dumps({**message, "params": params}).encode()
        return client.post("/mcp", content=body, headers=kept)

    meta = message["params"]["_meta"]
    assert sent(meta).status_code == 200
    for lacking in (META + "protocolVersion", META + "clientCapabilities"):
        reply = sent({key: value for key, value in meta.items() if key != lacking})
        assert (reply.status_code, code_of(reply)) == (400, -32602)
    reply = sent(None)
    assert (reply.status_code, code_of(reply)) == (400, -32602)
    assert sent({k: v for k, v in meta.items() if "clientInfo" not in k}).status_code == 200
    for name, value in {
        "mcp_protocol_version": None,
        "mcp_method": None,
        "mcp-method": "tools/list",
        "MCP_Method": "Tools/Call",
        "mcp_name": None,
        "mcp-name": "other",
    }.items():
        reply = sent(meta, **{name.lower(): value})
        assert (reply.status_code, code_of(reply)) == (400, -32020), name
    assert sent(meta, mcp_name="=?base64?ZWNobw==?=").status_code == 200
    assert sent(meta, mcp_name="=?base64?ZWNobw=?=").status_code == 400
    unknown = sent(meta | {META + "protocolVersion": "v9"}, mcp_protocol_version="v9")
    assert (unknown.status_code, code_of(unknown)) == (400, -32022)
    assert unknown.json()["error"]["data"] == {"supported": [STATELESS], "requested": "v9"}


def test_arguments_that_fields_repeat(client: Client) -> None:
    session = Session(client)

    def status(arguments: dict[str, Any], **fields: str) -> int:
        message = session.message("tools/call", {"name": "routed", "arguments": arguments}, {})
        return session.post(message, **fields).status_code

    assert status({}) == 200
    assert status({"region": "eu", "count": 3}, mcp_param_region="eu", mcp_param_count="3") == 200
    assert status({"region": "eu"}) == 400
    assert status({}, mcp_param_region="eu") == 400
    assert status({"region": "eu"}, mcp_param_region="us") == 400
    assert status({"region": "ü"}, mcp_param_region="=?base64?w7w=?=") == 200
    assert status({"region": "ü"}, mcp_param_region="=?base64?w7w?=") == 400
    old = Session(client, "2025-11-25")
    assert old.text("routed", region="eu") == "eu 0"


# --- sessions ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SESSIONS)
def test_the_life_of_a_session(client: Client, version: str) -> None:
    session = Session(client, version)
    assert session.result("ping") == {}
    assert session.session is not None
    assert session.session.isascii()
    assert session.session.isprintable()
    assert session.text("echo", text="x") == "x"
    other = "2025-11-25" if version != "2025-11-25" else "2025-06-18"
    reply = session.post(session.message("ping", {}, {}), mcp_protocol_version=other)
    assert reply.status_code == 400
    headers = {"mcp-session-id": session.session, "mcp-protocol-version": version}
    assert client.delete("/mcp", headers=headers).status_code == 204
    assert session.send("ping").status_code == 404
    assert client.delete("/mcp", headers=headers).status_code == 404
    get = client.get("/mcp", headers={**headers, "accept": "text/event-stream"})
    assert get.status_code == 404


def test_sessions_that_there_are_not(client: Client) -> None:
    own = Session(client, "2025-11-25")
    assert own.session is not None
    payload, expires, signature = own.session.split(".")
    for identifier in (
        "x",
        "",
        "a.b.c",
        f"{payload}.{expires}.{signature[::-1]}",
        "é" * 10,
        "." * 9000,
    ):
        reply = post(
            client, b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            **{"mcp-session-id": identifier.encode().decode("latin-1")},
        )  # fmt: skip
        assert reply.status_code == 404, identifier[:20]
    elsewhere = client.post(
        "/pages", content=b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        headers={**JSON, "mcp-session-id": own.session, "host": "api.example.com"},
    )  # fmt: skip
    assert elsewhere.status_code == 404


def test_the_level_of_logs(client: Client) -> None:
    session = Session(client, "2025-11-25")
    methods = [
        one.get("method") for one in messages_of(session.send("tools/call", {"name": "reports"}))
    ]
    assert methods == ["notifications/message", None]
    assert session.result("logging/setLevel", {"level": "error"}) == {}
    methods = [
        one.get("method") for one in messages_of(session.send("tools/call", {"name": "reports"}))
    ]
    assert methods == [None]
    assert session.error("logging/setLevel", {"level": "loud"})["code"] == -32602
    stateless = Session(client)
    reply = stateless.send("tools/call", {"name": "reports"})
    assert [one.get("method") for one in messages_of(reply)] == [None]
    reply = stateless.send("tools/call", {"name": "reports"}, **{META + "logLevel": "debug"})
    assert [one.get("method") for one in messages_of(reply)] == ["notifications/message", None]


def test_other_methods_of_http(client: Client) -> None:
    new = {"mcp-protocol-version": STATELESS}
    for method in (client.get, client.delete):
        reply = method("/mcp", headers=new)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert client.get("/mcp").status_code == 406
    assert client.get("/mcp", headers={"accept": "text/event-stream"}).status_code == 400
    assert client.delete("/mcp").status_code == 400
    assert client.put("/mcp", content=b"").status_code == 405


# --- batches -------------------------------------------------------------------------------------------


def test_batches_are_of_the_oldest_version_alone(client: Client) -> None:
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "reports"}}
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call,
        {"jsonrpc": "2.0", "id": 3},
        {"jsonrpc": "2.0", "id": 4, "method": "initialize"},
        7,
    ]
    body = json.dumps(batch).encode()
    for version in SESSIONS:
        session = Session(client, version)
        assert session.session is not None
        reply = post(client, body, **{"mcp-session-id": session.session})
        if version == "2025-03-26":
            found = reply.json()
            assert [one["id"] for one in found] == [1, 2, 3, 4, None]
            assert ["error" in one for one in found] == [False, False, True, True, True]
        else:
            assert (reply.status_code, code_of(reply)) == (400, -32600)
    session = Session(client, "2025-03-26")
    assert session.session is not None
    fields = {"mcp-session-id": session.session}
    many = json.dumps([{"jsonrpc": "2.0", "id": 1, "method": "ping"}] * 101).encode()
    assert post(client, many, **fields).status_code == 400
    silent = b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]'
    assert (post(client, silent, **fields).status_code, post(client, silent, **fields).content) == (
        202,
        b"",
    )


# --- pages of other sites ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("origin", "is_allowed"),
    [
        ("http://localhost:3000", True),
        ("http://127.0.0.1", True),
        ("http://[::1]:80", True),
        ("http://evil.example.com", False),
        ("http://localhost.evil.example.com", False),
        ("http://evil.example.com:80@localhost", True),
        ("null", False),
        ("http://[", False),
        ("", False),
    ],
)
def test_pages_of_other_sites(client: Client, origin: str, is_allowed: bool) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    assert post(client, body, origin=origin).status_code == (200 if is_allowed else 403)
    for method in (client.get, client.delete):
        assert (method("/mcp", headers={"origin": origin}).status_code == 403) is not is_allowed


def test_declared_origins_and_hosts(client: Client) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'

    def status(**fields: str) -> int:
        return client.post("/pages", content=body, headers=JSON | fields).status_code

    assert status(host="api.example.com", origin="https://app.example.com") == 200
    assert status(host="api.example.com:8443") == 200
    assert status(host="API.example.com") == 200
    assert status(host="api.example.com", origin="http://localhost:3000") == 403
    assert status(host="api.example.com", origin="https://app.example.com.evil.com") == 403
    assert status(host="evil.example.com") == 403
    assert status(host="evil.example.com", origin="https://app.example.com") == 403


def test_a_large_body_is_refused_by_the_server(client: Client) -> None:
    with Client(app, limits={"body_bytes_max": 1000}, raise_errors=False) as small:
        assert small.post("/mcp", content=b"x" * 1001, headers=JSON).status_code == 413


def test_below_the_prefix_of_a_mounted_application() -> None:
    inner, outer = App(), App()
    server = inner.mcp("/mcp")

    @server.tool
    def where(request: Request) -> str:
        return request.path

    outer.mount("/inner", inner)
    with Client(outer) as client:
        assert Session(client, path="/inner/mcp").text("where") == "/inner/mcp"
        assert Session(client, "2025-11-25", path="/inner/mcp").text("where") == "/inner/mcp"


def test_a_server_without_tools(client: Client) -> None:
    for version in VERSIONS:
        session = Session(client, version, path="/empty")
        assert session.error("tools/call", {"name": "x", "arguments": {}})["code"] == -32601
        assert session.error("tools/list")["code"] == -32601


def test_a_session_does_not_outlast_its_time() -> None:
    app = App()
    server = app.mcp("/mcp", session_s=1)
    with Client(app) as client:
        session = Session(client, "2025-11-25")
        assert session.result("ping") == {}
        assert session.session is not None
        known = server.sessions._known  # pyright: ignore[reportPrivateUsage]
        found, fence, _ = known[session.session]
        known[session.session] = found, fence, 0
        wait_for(lambda: session.send("ping").status_code == 404, "the end of the session")


def test_a_part_of_a_uri_has_no_slash() -> None:
    app = App()
    server = app.mcp("/mcp")

    @server.resource("notes://{id}/text")
    def part(id: str) -> str:
        return id

    @server.resource("files://{+path}")
    def whole(path: str) -> str:
        return path

    with Client(app) as client:
        session = Session(client)
        read = session.result("resources/read", {"uri": "notes://a%20b/text"})
        assert read["contents"][0]["text"] == "a b"
        read = session.result("resources/read", {"uri": "files://a/b%2Fc"})
        assert read["contents"][0]["text"] == "a/b/c"
        for uri in (
            "notes://a/b/text",
            "notes://..%2Fb/text",
            "notes:///text",
            "notes://a/textx",
            "x",
        ):
            assert session.error("resources/read", {"uri": uri})["data"] == {"uri": uri}
