"""``citius mcp``: messages on lines of standard input and output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_rig import META, STATELESS, Process, request
from rig import application


def stateless(method: str, identifier: int, /, **params: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {
        META + "protocolVersion": STATELESS,
        META + "clientCapabilities": {"elicitation": {}},
    }
    return request(method, identifier, _meta=meta | params.pop("_meta", {}), **params)


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process(str(application("mcp_app")))
    yield made
    made.process.kill()
    made.process.communicate()


def test_a_session(process: Process) -> None:
    assert process.initialize()["serverInfo"]["name"] == "waiting"
    process.send(request("tools/call", "a", name="touch", arguments={"uri": "notes://1"}))
    assert process.next()["result"]["content"][0]["text"] == "touched"
    process.send(b"nonsense", b"", b"[]", {"jsonrpc": "2.0", "id": 7, "method": "other"})
    codes = {process.next()["error"]["code"] for _ in range(3)}
    assert codes == {-32700, -32600, -32601}
    assert process.end()[0] == []


def test_questions(process: Process) -> None:
    process.initialize(elicitation={})
    process.send(request("tools/call", 1, name="asks", arguments={"number": 3}))
    question = process.next()
    assert question["method"] == "elicitation/create"
    content = {"action": "accept", "content": {"name": "a"}}
    process.send({"jsonrpc": "2.0", "id": question["id"], "result": content})
    assert process.next()["result"]["content"][0]["text"] == "a 3"


def test_news_of_resources(process: Process) -> None:
    process.initialize()
    process.send(request("resources/subscribe", 1, uri="notes://1"))
    assert process.next()["result"] == {}
    process.send(request("tools/call", 2, name="touch", arguments={"uri": "notes://1"}))
    found = [process.next() for _ in range(2)]
    assert {one.get("method") for one in found} == {"notifications/resources/updated", None}


def test_cancellation(process: Process) -> None:
    process.initialize()
    call = request("tools/call", 1, name="waits", arguments={}, _meta={"progressToken": 1})
    process.send(call)
    assert process.next()["method"] == "notifications/progress"
    cancelled = {"requestId": 1, "reason": "enough"}
    process.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled},
        request("ping", 2),
    )
    assert process.next() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    left, errors = process.end()
    assert left == []
    assert "waits was cancelled" in errors


def test_without_a_session(process: Process) -> None:
    process.send(stateless("server/discover", 1))
    assert process.next()["result"]["supportedVersions"] == [STATELESS]
    process.send(stateless("resources/read", 2, uri="notes://7"))
    assert process.next()["result"]["contents"][0]["text"] == "note 7"
    process.send(stateless("tools/call", 3, name="asks", arguments={"number": 1}))
    first = process.next()["result"]
    assert first["resultType"] == "input_required"
    answers = {"q1": {"action": "accept", "content": {"name": "a"}}}
    again = {"requestState": first["requestState"], "inputResponses": answers}
    process.send(stateless("tools/call", 4, name="asks", arguments={"number": 1}, **again))
    assert process.next()["result"]["content"][0]["text"] == "a 1"
    process.send(stateless("tools/call", 5, name="waits", arguments={}, _meta={"progressToken": 1}))
    assert process.next()["method"] == "notifications/progress"
    cancelled = {"requestId": 5}
    process.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    wanted = {"resourceSubscriptions": ["notes://1"]}
    process.send(stateless("subscriptions/listen", 6, notifications=wanted))
    assert process.next()["method"] == "notifications/subscriptions/acknowledged"
    process.send(stateless("tools/call", 7, name="touch", arguments={"uri": "notes://1"}))
    assert {process.next().get("method") for _ in range(2)} == {
        "notifications/resources/updated", None,
    }  # fmt: skip
    left, errors = process.end()
    assert left == []
    assert "waits was cancelled" in errors


def test_what_the_application_prints_and_the_fields_it_gets(tmp_path: Path) -> None:
    source = (
        "import os\nfrom typing import Annotated\nfrom citius import App, Header\n"
        "app = App()\nmcp = app.mcp('/mcp')\nother = app.mcp('/other')\n@mcp.tool\n"
        "def whoami(x_user: Annotated[str, Header()]) -> str:\n"
        "    print('printed')\n    os.write(1, b'written')\n    return x_user\n"
    )
    (tmp_path / "main.py").write_text(source)
    arguments = (
        "main:app",
        "--app-dir",
        str(tmp_path),
        "--path",
        "/mcp",
        "--header",
        "X-User: ann",
    )
    process = Process(*arguments)
    process.send(stateless("tools/call", 1, name="whoami", arguments={}))
    assert process.next()["result"]["content"][0]["text"] == "ann"
    left, errors = process.end()
    assert left == []
    assert "printed" in errors
    assert "written" in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["main:app"], "these MCP servers: /mcp, /other"),
        (["main:app", "--path", "/x"], "no MCP server at /x"),
        (["main:plain"], "has no MCP server"),
        (["main:app", "--path", "/mcp", "--header", "x"], "expected NAME:VALUE"),
    ],
)
def test_what_cannot_be_served(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "main.py").write_text(
        "from citius import App\napp, plain = App(), App()\napp.mcp('/mcp')\napp.mcp('/other')\n"
    )
    process = Process(*arguments, "--app-dir", str(tmp_path))
    _, errors = process.process.communicate(timeout=30)
    assert process.process.returncode == 2
    assert said in " ".join(errors.decode().split())
