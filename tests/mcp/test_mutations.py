"""Messages with random mistakes: each has a response of the protocol, and nothing unexpected is raised."""

from __future__ import annotations

import json
import random
from typing import Any, cast

import pytest
from citius import App
from citius.mcp import Context
from citius.testing import Client
from mcp_rig import ALL, VERSIONS, Session

app = App()
mcp = app.mcp("/mcp")

METHODS = [
    "tools/call", "tools/list", "resources/read", "resources/list", "resources/templates/list",
    "resources/unsubscribe", "prompts/get", "prompts/list", "completion/complete", "logging/setLevel",
    "server/discover", "initialize", "ping", "other",
]  # fmt: skip
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 10**30, "", "x", "add", "notes://1", "\ud7ff", "é" * 50, [], [1], {}, {"a": 1},
    {"name": "x"},
]  # fmt: skip
PARAMS: dict[str, Any] = {
    "name": "add", "uri": "notes://1", "arguments": {"a": 1}, "level": "info", "capabilities": {},
    "ref": {"type": "ref/prompt", "name": "ask"}, "argument": {"name": "what", "value": "p"},
    "protocolVersion": "2025-11-25", "clientInfo": {},
}  # fmt: skip


@mcp.tool
def add(a: int, b: list[str] | None = None) -> int:
    return a


@mcp.tool
async def reports(context: Context, a: int = 1) -> int:
    await context.progress(1)
    return a


@mcp.resource("notes://{id}")
def note(id: int) -> str:
    return str(id)


@mcp.prompt
def ask(what: str = "") -> str:
    return what


def mutated(value: Any, source: random.Random) -> Any:
    if source.random() < 0.15:
        return source.choice(VALUES)
    if not isinstance(value, dict):
        return value
    items = cast("dict[str, Any]", value).items()
    made = {key: mutated(one, source) if source.random() < 0.3 else one for key, one in items}
    if made and source.random() < 0.2:
        del made[source.choice(list(made))]
    if source.random() < 0.2:
        made[source.choice([*PARAMS, "_meta", "inputResponses", "requestState", "cursor"])] = (
            source.choice(VALUES)
        )
    return made


@pytest.mark.parametrize("version", VERSIONS)
def test_mutations(version: str) -> None:
    source = random.Random(version)
    with Client(app) as client:
        session = Session(client, version, ALL)
        for _ in range(400):
            name = source.choice(["add", "reports", "ask"])
            message = session.message(source.choice(METHODS), PARAMS | {"name": name}, {})
            headers = session.headers(message)
            body = json.dumps(mutated(message, source)).encode()
            if source.random() < 0.1:
                at = source.randrange(len(body))
                body = body[:at] + bytes([source.randrange(256)]) + body[at + 1 :]
            reply = client.post("/mcp", content=body, headers=headers)
            assert reply.status_code in (200, 202, 400, 404), body
            assert b"-32603" not in reply.content, body
