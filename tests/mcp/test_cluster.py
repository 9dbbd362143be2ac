"""Sessions, answers, cancellations and news over two machines with Redis between them."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from citius import App, ConfigError
from citius.cluster import Cluster
from citius.testing import Client
from engines_rig import Redis
from mcp_rig import (
    ALL,
    STATELESS,
    Listening,
    Session,
    Stream,
    accepted,
    events_of,
    messages_of,
)
from rig import Server, application, wait_for

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)

SECRET = "a secret of both machines, which is long"


@pytest.fixture(scope="module")
def nodes(
    serve_module: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[httpx.Client]]:
    directory: Path = tmp_path_factory.mktemp("redis")
    redis = Redis(directory / "redis")
    env = {"CLUSTER": redis.url, "MCP_SECRET": SECRET}
    servers = [serve_module(application("mcp_app"), env=env).wait_ready() for _ in range(2)]
    clients = [httpx.Client(base_url=f"http://127.0.0.1:{one.port}", timeout=10) for one in servers]
    yield clients
    for client in clients:
        client.close()
    redis.close()


def port_of(client: httpx.Client) -> int:
    assert client.base_url.port is not None
    return client.base_url.port


def elsewhere(session: Session, client: httpx.Client) -> Session:
    """The same session on another machine."""
    other = Session.__new__(Session)
    other.__dict__ = {**session.__dict__, "client": client}
    return other


def test_a_session_is_of_all_machines(nodes: list[httpx.Client]) -> None:
    session = Session(nodes[0], "2025-11-25")
    other = elsewhere(session, nodes[1])
    other.result("logging/setLevel", {"level": "error"})
    for one in (session, other):
        reply = one.send("tools/call", {"name": "logs", "arguments": {}})
        assert len(messages_of(reply)) == 1
    assert session.session is not None
    ended = nodes[1].delete("/mcp", headers={"mcp-session-id": session.session})
    assert ended.status_code == 204
    for one in (session, other):
        assert one.send("ping").status_code == 404


def test_an_answer_may_come_to_another_machine(nodes: list[httpx.Client]) -> None:
    session = Session(nodes[0], "2025-11-25", ALL)
    call = session.message("tools/call", {"name": "asks", "arguments": {"number": 1}}, {})
    stream = Stream(session, call, port_of(nodes[0]))
    question = stream.next()
    other = elsewhere(session, nodes[1])
    answer = {"jsonrpc": "2.0", "id": question["id"], "result": accepted(name="a")}
    assert other.post(answer).status_code == 202
    assert stream.next()["result"]["content"][0]["text"] == "a 1"
    stream.close()


def test_a_call_is_cancelled_from_another_machine(nodes: list[httpx.Client]) -> None:
    session = Session(nodes[0], "2025-11-25")
    other = elsewhere(session, nodes[1])
    call = session.message("tools/call", {"name": "waits_alone", "arguments": {}}, {})
    done: list[Any] = []

    def send() -> None:
        with httpx.Client(base_url=nodes[0].base_url, timeout=20) as own:
            done.append(own.post("/mcp", content=json.dumps(call), headers=session.headers(call)))

    thread = threading.Thread(target=send)
    thread.start()

    def cancel() -> bool:
        params = {"requestId": call["id"]}
        other.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        thread.join(0.05)
        return not thread.is_alive()

    wait_for(cancel, "the end of the call")
    assert events_of(done[0].content) == []


def test_news_come_to_the_streams_of_all_machines(nodes: list[httpx.Client]) -> None:
    session = Session(nodes[0], "2025-11-25")
    assert session.result("resources/subscribe", {"uri": "notes://1"}) == {}
    stream = Listening(elsewhere(session, nodes[1]), port_of(nodes[1]))
    assert Session(nodes[0]).text("touch", uri="notes://1") == "touched"
    assert stream.next()["params"] == {"uri": "notes://1"}
    stream.close()


def test_a_state_is_of_all_machines(nodes: list[httpx.Client]) -> None:
    session = Session(nodes[0], STATELESS, ALL)
    params: dict[str, Any] = {"name": "asks", "arguments": {"number": 2}}
    first = session.result("tools/call", params)
    params |= {"requestState": first["requestState"], "inputResponses": {"q1": accepted(name="a")}}
    other = elsewhere(session, nodes[1])
    assert other.result("tools/call", params)["content"][0]["text"] == "a 2"


def test_sessions_go_on_while_the_engine_is_away(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    """What a session has changed cannot be read then: it is as it began, and not gone."""
    redis = Redis(tmp_path / "redis")
    env = {"CLUSTER": redis.url, "MCP_SECRET": SECRET}
    server = serve(application("mcp_app"), env=env).wait_ready()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
            session = Session(client, "2025-11-25")
            redis.kill()
            assert session.send("ping").status_code == 200
            reply = session.send("tools/call", {"name": "logs", "arguments": {}})
            assert [one for one in messages_of(reply) if "result" in one], reply.text
            refused = session.send("logging/setLevel", {"level": "error"})
            assert refused.status_code == 503
            redis.restart()
            wait_for(
                lambda: session.send("logging/setLevel", {"level": "error"}).status_code == 200,
                "the engine to be back",
            )
            assert session.session is not None
            client.delete("/mcp", headers={"mcp-session-id": session.session})
            assert session.send("ping").status_code == 404
    finally:
        redis.close()


def test_machines_need_a_secret_in_common() -> None:
    app = App(cluster=Cluster("redis://127.0.0.1:1"))
    app.mcp("/mcp")
    with pytest.raises(ConfigError, match="needs secret="), Client(app):
        pass
