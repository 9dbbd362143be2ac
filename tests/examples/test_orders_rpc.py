"""examples/orders-rpc: called by generated clients, by grpcurl and by curl's JSON."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import rig
from rig import Server

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/orders-rpc"
ENVIRONMENT = ROOT / ".tools/connect/environment/bin/python"
GRPCURL = ROOT / ".tools/grpcurl"

pytestmark = pytest.mark.skipif(
    not (ENVIRONMENT.exists() and GRPCURL.exists()),
    reason="`make .tools/connect/ready .tools/grpcurl` installs connectrpc and grpcurl",
)

CLIENT = """
import asyncio, json, sys
from gen.orders.v1.orders_connect import OrdersServiceClient
from gen.orders.v1.orders_pb import GetRequest, Line, PlaceRequest
from connectrpc.errors import ConnectError
from connectrpc.protocol import ProtocolType

async def main(address):
    ann = {"authorization": "Bearer ann"}
    for protocol in (ProtocolType.CONNECT, ProtocolType.GRPC_WEB):
        async with OrdersServiceClient(address, protocol=protocol) as client:
            request = PlaceRequest(key=protocol.name, lines=[Line(article="pen", count=2)])
            order = await client.place(request, headers=ann)
            assert (await client.place(request, headers=ann)).id == order.id
            states = [one.state.name async for one in client.watch(GetRequest(id=order.id), headers=ann)]
            assert states == ["PLACED", "SENT", "DELIVERED"], states
            for headers, code in ((ann, "NOT_FOUND"), ({}, "UNAUTHENTICATED")):
                try:
                    await client.get(GetRequest(id="none"), headers=headers)
                except ConnectError as error:
                    assert error.code.name == code, error
                else:
                    raise AssertionError("no error")
    print("done")

asyncio.run(main(sys.argv[1]))
"""


def test_orders(serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rig, "PYTHON", str(ENVIRONMENT))
    server = serve(EXAMPLE / "service.py", env={"PYTHONDEVMODE": "", "PYTHONWARNINGS": ""})
    address = f"127.0.0.1:{server.port}"
    done = subprocess.run(
        [ENVIRONMENT, "-c", CLIENT, f"http://{address}"],
        capture_output=True, text=True, timeout=60, cwd=EXAMPLE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = json.dumps({"key": "x", "lines": [{"article": "ink", "count": 1}]})
    done = subprocess.run(
        [GRPCURL, "-plaintext", "-H", "authorization: Bearer bob", "-d", lines, address,
         "orders.v1.OrdersService/Place"],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert json.loads(done.stdout)["state"] == "STATE_PLACED", done.stderr
    with server.connect() as peer:
        fields = {"content_type": "application/json", "authorization": "Bearer bob"}
        path = "/orders.v1.OrdersService/Place"
        first = json.loads(peer.request("POST", path, lines.encode(), **fields).body)
        assert first["lines"] == [{"article": "ink", "count": 1}]
        assert peer.request("POST", path, b"{}", **fields).status == 400
        assert peer.request("GET", "/").status == 200
