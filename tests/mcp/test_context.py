"""What a function can do while it is called: report, log, ask; before and since 2026-07-28."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from citius import App
from citius.mcp import Context, Elicit, ListRoots, Message, OpenURL, Sample
from citius.testing import Client
from mcp_rig import (
    ALL,
    META,
    STATELESS,
    Listening,
    Session,
    Stream,
    accepted,
    events_of,
    messages_of,
)
from rig import Server, application

app = App()
mcp = app.mcp("/mcp")


@dataclass
class Form:
    name: str
    age: int = 1


runs: list[str] = []


@mcp.tool
async def asks(context: Context, times: int = 1) -> str:
    runs.append("begun")
    names: list[str] = []
    for _ in range(times):
        answer = await context.elicit("Who?", Form)
        names.append(f"{answer.action}:{answer.value.name if answer.value else ''}")
    runs.append("done")
    return " ".join(names)


@mcp.tool
async def asks_all(context: Context) -> str:
    form, said, roots, url = await context.ask(
        Elicit("Who?", Form, key="who"),
        Sample([Message("Hi", "assistant"), Message("Go on")], max_tokens=5, system="Be brief."),
        ListRoots(),
        OpenURL("Pay", "https://pay.example.com", id="p1"),
    )
    return f"{form.value} {said.text} {roots[0].uri} {url.action}"


@mcp.tool
async def careful(context: Context) -> str:
    try:
        await context.elicit("Who?", Form)
    except Exception:
        return "caught"
    return "answered"


@mcp.prompt
async def prompted(context: Context) -> str:
    return f"for {(await context.elicit('Who?', Form, key='who')).value}"


@mcp.resource("asked://{id}")
async def asked(context: Context, id: int) -> str:
    return f"{id} {(await context.elicit('Who?', Form, key='who')).value}"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client(app, raise_errors=False) as client:
        yield client


# --- since 2026-07-28 ----------------------------------------------------------------------------------


def test_questions_end_a_request(client: Client) -> None:
    session = Session(client, STATELESS, ALL)
    runs.clear()
    params: dict[str, Any] = {"name": "asks", "arguments": {"times": 2}}
    first = session.result("tools/call", params)
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["q1"]["params"]["requestedSchema"] == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "default": 1}},
        "required": ["name"],
    }
    params |= {"requestState": first["requestState"], "inputResponses": {"q1": accepted(name="a")}}
    second = session.result("tools/call", params)
    assert list(second["inputRequests"]) == ["q2"]
    params |= {
        "requestState": second["requestState"],
        "inputResponses": {"q2": {"action": "decline"}},
    }
    assert session.result("tools/call", params)["content"][0]["text"] == "accept:a decline:"
    assert runs == ["begun"] * 3 + ["done"]


def test_a_state_belongs_to_its_request(client: Client) -> None:
    session = Session(client, STATELESS, ALL)
    params: dict[str, Any] = {"name": "asks", "arguments": {"times": 2}}
    state = session.result("tools/call", params)["requestState"]
    answers = {"q1": accepted(name="a")}
    changed = state[:-1] + ("A" if state[-1] != "A" else "B")
    for wrong in (changed, state + "x", "", "x.y.z"):
        error = session.error(
            "tools/call", {**params, "requestState": wrong, "inputResponses": answers}
        )
        assert error["code"] == -32602
    other = {"name": "asks", "arguments": {"times": 3}, "requestState": state}
    assert session.error("tools/call", other)["code"] == -32602
    assert session.result("tools/call", {**params, "requestState": state})["inputRequests"]


@pytest.mark.parametrize(
    "answers",
    [
        {"q1": 7}, {"q1": {}}, {"q1": {"action": "maybe"}}, {"q1": {"action": "accept"}},
        {"q1": accepted(name=7)}, {"q1": accepted()}, None, [], 7,
    ],
)  # fmt: skip
def test_answers_that_do_not_match(client: Client, answers: object) -> None:
    session = Session(client, STATELESS, ALL)
    error = session.error(
        "tools/call", {"name": "asks", "arguments": {}, "inputResponses": answers}
    )
    assert error["code"] == -32602


def test_several_questions_at_once(client: Client) -> None:
    session = Session(client, STATELESS, ALL)
    params: dict[str, Any] = {"name": "asks_all", "arguments": {}}
    result = session.result("tools/call", params)
    methods = {key: one["method"] for key, one in result["inputRequests"].items()}
    assert methods == {
        "who": "elicitation/create", "q2": "sampling/createMessage", "q3": "roots/list",
        "q4": "elicitation/create",
    }  # fmt: skip
    sampled = {"model": "m", "role": "assistant", "content": {"type": "text", "text": "Hi."}}
    params["inputResponses"] = {
        "who": accepted(name="a"), "q2": sampled, "q3": {"roots": [{"uri": "file:///x"}]},
        "q4": {"action": "accept"}, "other": {"action": "accept"},
    }  # fmt: skip
    text = session.result("tools/call", params)["content"][0]["text"]
    assert text == "Form(name='a', age=1) Hi. file:///x accept"


def test_questions_that_a_client_cannot_be_asked(client: Client) -> None:
    session = Session(client, STATELESS, {"elicitation": {"url": {}}})
    reply = session.send("tools/call", {"name": "asks", "arguments": {}})
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    old = Session(client, "2025-11-25").error("tools/call", {"name": "asks", "arguments": {}})
    assert old["code"] == -32600


def test_except_exception_does_not_catch_a_question(client: Client) -> None:
    session = Session(client, STATELESS, ALL)
    params: dict[str, Any] = {"name": "careful", "arguments": {}}
    assert session.result("tools/call", params)["resultType"] == "input_required"


def test_prompts_and_resources_ask_too(client: Client) -> None:
    session = Session(client, STATELESS, ALL)
    answers = {"inputResponses": {"who": accepted(name="a")}}
    for method, params in (
        ("prompts/get", {"name": "prompted"}),
        ("resources/read", {"uri": "asked://7"}),
    ):
        assert session.result(method, params)["resultType"] == "input_required"
        result = session.result(method, {**params, **answers})
        assert result["resultType"] == "complete"
        assert "Form(name='a', age=1)" in json.dumps(result)


# --- before it: the client is asked on the stream ------------------------------------------------------


@pytest.fixture(scope="module", params=[1, 2], ids=["one worker", "two workers"])
def server(request: pytest.FixtureRequest, serve_module: Callable[..., Server]) -> Server:
    workers: int = request.param
    return serve_module(application("mcp_app"), "--workers", str(workers)).wait_ready()


def http_of(server: Server) -> httpx.Client:
    """Each request has a connection of its own, so that any worker may get it."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.Client(base_url=f"http://127.0.0.1:{server.port}", limits=limits, timeout=10)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_questions_on_the_stream(server: Server, version: str) -> None:
    """The answer may come to any worker."""
    with http_of(server) as http:
        for number in range(6):
            session = Session(http, version, ALL)
            call = session.message(
                "tools/call", {"name": "asks", "arguments": {"number": number}}, {}
            )
            stream = Stream(session, call, server.port)
            question = stream.next()
            assert question["method"] == "elicitation/create"
            stranger = Session(http, version, ALL)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": accepted(name="evil")}
            assert stranger.post(answer).status_code == 202
            answer["result"] = accepted(name="a")
            assert session.post(answer).status_code == 202
            last = stream.next()
            assert (last["id"], last["result"]["content"][0]["text"]) == (call["id"], f"a {number}")
            assert stream.rest() == []
            stream.close()


def test_a_client_that_refuses(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http, "2025-11-25", ALL)
        call = session.message("tools/call", {"name": "asks", "arguments": {"number": 1}}, {})
        stream = Stream(session, call, server.port)
        error = {"code": -1, "message": "no user"}
        session.post({"jsonrpc": "2.0", "id": stream.next()["id"], "error": error})
        result = stream.next()["result"]
        assert result["isError"] is True
        assert "no user" in result["content"][0]["text"]


def test_a_call_is_cancelled_over_any_worker(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http, "2025-11-25", ALL)
        for _ in range(4):
            for name in ("waits", "waits_alone"):
                call = session.message(
                    "tools/call", {"name": name, "arguments": {}}, {"progressToken": 1}
                )
                done: list[Any] = []

                def send(call: dict[str, Any] = call, done: list[Any] = done) -> None:
                    with http_of(server) as own:
                        done.append(
                            own.post(
                                "/mcp", content=json.dumps(call), headers=session.headers(call)
                            )
                        )

                thread = threading.Thread(target=send)
                thread.start()
                wanted = {"requestId": call["id"], "reason": "enough"}
                while thread.is_alive():
                    stranger = Session(http, "2025-11-25")
                    for one in (stranger, session):
                        cancel = {
                            "jsonrpc": "2.0",
                            "method": "notifications/cancelled",
                            "params": wanted,
                        }
                        assert one.post(cancel).status_code == 202
                    thread.join(0.05)
                assert done[0].status_code == 200
                assert all("result" not in one for one in events_of(done[0].content))


def test_a_stateless_client_cancels_by_leaving(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http)
        call = session.message(
            "tools/call", {"name": "waits", "arguments": {}}, {"progressToken": 1}
        )
        stream = Stream(session, call, server.port)
        assert stream.next()["method"] == "notifications/progress"
        stream.close()
        server.wait_for_log("waits was cancelled")


def test_an_earlier_client_does_not_cancel_by_leaving(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http, "2025-11-25")
        call = session.message(
            "tools/call", {"name": "goes_on", "arguments": {}}, {"progressToken": 1}
        )
        stream = Stream(session, call, server.port)
        assert stream.next()["method"] == "notifications/progress"
        stream.close()
        server.wait_for_log("goes_on has ended")


def test_a_call_without_a_context_goes_on_too(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http, "2025-11-25")
        call = session.message("tools/call", {"name": "goes_on_alone", "arguments": {}}, {})
        with server.connect() as peer:
            body = json.dumps(call).encode()
            fields = "".join(
                f"{name}: {value}\r\n" for name, value in session.headers(call).items()
            )
            head = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{fields}\r\n"
            peer.send(head.encode() + body)
            server.wait_for_log("goes_on_alone has begun")
        server.wait_for_log("goes_on_alone has ended")


def test_a_question_ends_when_its_client_leaves(serve: Callable[..., Server]) -> None:
    """If it cannot come back."""
    server = serve(application("mcp_app"), env={"RESUME_S": "0"}).wait_ready()
    with http_of(server) as http:
        session = Session(http, "2025-11-25", ALL)
        call = session.message("tools/call", {"name": "asks", "arguments": {"number": 1}}, {})
        stream = Stream(session, call, server.port)
        stream.next()
        stream.close()
        server.wait_for_log("asks has ended: the client has refused: the client has left")


def test_news_of_resources_reach_the_streams_of_all_workers(server: Server) -> None:
    with http_of(server) as http:
        old, other, new = Session(http, "2025-11-25"), Session(http, "2025-11-25"), Session(http)
        for session in (old, other):
            for uri in ("notes://1", "notes://2"):
                assert session.result("resources/subscribe", {"uri": uri}) == {}
        assert other.result("resources/unsubscribe", {"uri": "notes://1"}) == {}
        assert old.error("resources/subscribe", {"uri": "other://1"})["code"] == -32002
        streams = [Listening(one, server.port) for one in (old, other)]
        wanted = {"notifications": {"resourceSubscriptions": ["notes://1", "other://1"]}}
        call = new.message("subscriptions/listen", wanted, {})
        listening = Stream(new, call, server.port)
        first = listening.next()
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"resourceSubscriptions": ["notes://1"]}
        tag = {META + "subscriptionId": call["id"]}
        assert first["params"]["_meta"] == tag
        for uri in ("notes://3", "notes://1", "notes://2"):
            new.call("touch", uri=uri)
        assert listening.next()["params"] == {"_meta": tag, "uri": "notes://1"}
        # Two workers may have had the calls: what one of them tells is not before what the other does.
        assert {streams[0].next()["params"]["uri"] for _ in range(2)} == {"notes://1", "notes://2"}
        assert streams[1].next()["params"]["uri"] == "notes://2"
        for one in (*streams, listening):
            one.close()


def test_sessions_are_of_all_workers(server: Server) -> None:
    with http_of(server) as http:
        session = Session(http, "2025-11-25")
        session.result("logging/setLevel", {"level": "error"})
        for _ in range(8):
            reply = session.send("tools/call", {"name": "logs", "arguments": {}})
            assert len(messages_of(reply)) == 1
        assert session.session is not None
        http.delete("/mcp", headers={"mcp-session-id": session.session})
        for _ in range(8):
            assert session.send("ping").status_code == 404


def test_nothing_is_kept_of_calls(client: Client) -> None:
    session = Session(client, "2025-11-25")
    for _ in range(3):
        session.send("tools/call", {"name": "careful", "arguments": {}})
    assert mcp.running == {}
    assert mcp.pending == {}
    assert not mcp.detached


def test_streams_end_before_a_shutdown(serve: Callable[..., Server]) -> None:
    """They have no end of their own, which the shutdown would wait for."""
    server = serve(application("mcp_app"), "--drain-s", "60").wait_ready()
    with http_of(server) as http:
        old, new = Session(http, "2025-11-25"), Session(http)
        stream = Listening(old, server.port)
        call = new.message("subscriptions/listen", {"notifications": {}}, {})
        listening = Stream(new, call, server.port)
        assert listening.next()["method"] == "notifications/subscriptions/acknowledged"
        server.signal(signal.SIGTERM)
        assert server.wait(30) == 0
        assert listening.rest() == []
        assert stream.rest() == []
        stream.close()
        listening.close()
