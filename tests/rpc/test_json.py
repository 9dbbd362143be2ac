"""JSON-RPC 2.0 on the same port."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import jsonrpcclient
import pytest
from rig import TIMEOUT_S, Peer, Server
from rpc_rig import connect_rpc, rpc_address


class JsonPeer(Peer):
    """A client that decides about every byte."""

    def ask(self, text: str) -> Any:
        """Send a text; the answer to it, which is a line."""
        self.send(text.encode())
        return json.loads(self.read_until(b"\n"))


def connect_json(server: Server) -> JsonPeer:
    host, _, port = rpc_address(server).rpartition(":")
    made = socket.create_connection((host, int(port)))
    made.settimeout(TIMEOUT_S)
    return JsonPeer(made)


def call(method: str, params: object = None, id: object = 1) -> str:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "id": id}
    if params is not None:
        message["params"] = params
    return json.dumps(message)


def test_calls_and_their_results(procedures) -> None:
    with connect_json(procedures) as peer:
        assert peer.ask(call("hello")) == {"jsonrpc": "2.0", "id": 1, "result": "Hello World!"}
        assert peer.ask(call("sum", [1, 2], "a"))["result"] == 3
        assert peer.ask(call("sum", {"b": 1, "a": 4}))["result"] == 5
        assert peer.ask(call("total", [1, 2.5]))["result"] == 3.5
        assert peer.ask(call("users.get", {"id": 5, "name": "é\n"}))["result"] == {
            "id": 5, "name": "é\n",
        }  # fmt: skip
        assert peer.ask(call("block", [0]))["result"].startswith("citius-blocking")
        assert peer.ask(call("echo"))["result"] is None


def test_errors_have_the_codes_of_the_specification(procedures) -> None:
    with connect_json(procedures) as peer:
        for text, code, kind in [
            ('{"jsonrpc":"2.0","id":1,oops}', -32700, "ParseError"),
            ('{"id":1}', -32600, "InvalidRequest"),
            (call("nope"), -32601, "MethodNotFound"),
            (call("sum", [1, "2"]), -32602, "InvalidParams"),
            (call("sum", {"a": 1}), -32602, "InvalidParams"),
            ('{"jsonrpc":"2.0","id":1,"method":"sum","params":[1,tru]}', -32700, "ParseError"),
            (call("fail"), -32603, "InternalError"),
            (call("users.get", [101]), -32000, "UnknownUser"),
            (call("refuse"), 409, "Conflict"),
            (call("hasty"), -32001, "DeadlineExceeded"),
        ]:
            answer = peer.ask(text)
            assert answer["error"]["code"] == code, text
            assert answer["error"]["data"]["type"] == kind
            assert "result" not in answer
            assert "1234" not in str(answer)
        detail = peer.ask(call("users.get", [101]))["error"]["data"]["detail"]
        assert detail == {"id": 101}


def test_a_batch(procedures) -> None:
    with connect_json(procedures) as peer:
        calls = [call("sleep", [0.1], "late"), call("sum", [1, 2], "soon"), call("nope", id="no")]
        note = '{"jsonrpc":"2.0","method":"note","params":["batch"]}'
        answers = peer.ask(f"[{','.join([*calls, note])}]")
        assert [answer["id"] for answer in answers] == ["soon", "no", "late"]
        assert answers[0]["result"] == 3
        assert answers[1]["error"]["code"] == -32601
        assert "batch" in peer.ask(call("seen"))["result"]["noted"]


def test_answers_come_when_they_are_ready(procedures) -> None:
    with connect_json(procedures) as peer:
        first = peer.ask(call("sleep", [0.2], 1) + call("hello", id=2))
        assert first["id"] == 2
        assert json.loads(peer.read_until(b"\n"))["id"] == 1


def test_both_protocols_side_by_side(procedures) -> None:
    with connect_json(procedures) as one, connect_rpc(procedures) as other:
        for n in range(3):
            assert one.ask(call("sum", [n, 1]))["result"] == n + 1
            assert other.call("sum", n, 2) == (None, n + 2)


def test_somebody_elses_client_understands(procedures) -> None:
    with connect_json(procedures) as peer:
        answer = jsonrpcclient.parse(peer.ask(jsonrpcclient.request_json("sum", params=[2, 3])))
        assert isinstance(answer, jsonrpcclient.Ok)
        assert answer.result == 5
        answer = jsonrpcclient.parse(peer.ask(jsonrpcclient.request_json("sum", params=[2])))
        assert isinstance(answer, jsonrpcclient.Error)
        assert answer.code == -32602
        batch = [jsonrpcclient.request("sum", params=(n, n)) for n in range(3)]
        answers = jsonrpcclient.parse(peer.ask(json.dumps(batch)))
        assert sorted(answer.result for answer in answers) == [0, 2, 4]
        peer.send(jsonrpcclient.notification_json("note", params=["theirs"]).encode())
        assert "theirs" in peer.ask(call("seen"))["result"]["noted"]


@pytest.mark.parametrize(
    "text", ["oops", '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]']
)
def test_what_has_no_end_is_told_and_ends_the_connection(procedures, text: str) -> None:
    with connect_json(procedures) as peer:
        assert peer.ask(text)["error"]["code"] == -32700
        assert peer.is_closed()


def test_a_batch_that_is_too_long_takes_no_memory_of_its_elements(serve_rpc) -> None:
    server = serve_rpc()

    def peak_kib() -> int:
        text = Path(f"/proc/{server.process.pid}/status").read_text()
        return int(text.split("VmHWM:")[1].split()[0])

    with connect_json(server) as peer:
        before_kib = peak_kib()
        size = 15 * 1024 * 1024
        refused = peer.ask("[" + "1," * (size // 2) + "1]")
        assert "too many calls" in refused["error"]["message"]
        assert peak_kib() - before_kib < 3 * size // 1024, "the message itself, as buffers grow"
