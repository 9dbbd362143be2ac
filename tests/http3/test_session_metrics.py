"""What metrics and the access log say of WebTransport sessions and of the calls on their streams."""

# pyright: basic

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest
from callpeer import asked, called, peer, sent, until_told
from prometheus_client.parser import text_string_to_metric_families
from rig import application, get, wait_for
from wtpeer import to_http3, wt_client

CALLS, SESSIONS = application("session_calls_app"), application("webtransport_app")
MANAGED = ("--management", "127.0.0.1:0")
REQUESTS = "citius_http_requests_total{method=other,route=%s,status=%s}"
OPEN = "citius_webtransport_%s_open{worker=0}"


def metrics(server) -> dict[str, float]:
    """All samples by name and labels."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(get(server.management(), "/metrics")[1].decode()):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def wait_for_metrics(server, **expected: float) -> None:
    """Wait until the samples have these values; names of keywords are of ``NAMES``."""
    wanted = {NAMES[name]: value for name, value in expected.items()}

    def are_so() -> bool:
        found = metrics(server)
        return all(found.get(name, 0) == value for name, value in wanted.items())

    wait_for(are_so, f"the metrics {wanted}")


NAMES = {
    "sessions": OPEN % "sessions",
    "streams": OPEN % "streams",
    "dropped": "citius_webtransport_datagrams_dropped_total",
    "requests_open": "citius_http_requests_open{worker=0}",
    "added": REQUESTS % ("math.add", "2xx"),
    "refused": REQUESTS % ("math.add", "4xx"),
    "failed": REQUESTS % ("breaks", "5xx"),
    "noted": REQUESTS % ("note", "2xx"),
    "cancelled": REQUESTS % ("wait", "4xx"),
    "unknown": REQUESTS % ("", "4xx"),
}


def calls(server, count: int) -> dict[str, list[tuple[int, int, str]]]:
    """Status, bytes and fault of each call in the access log, by the names of procedures."""

    def lines() -> list[dict]:
        every = [json.loads(line) for line in server.out.splitlines() if line.startswith("{")]
        return [line for line in every if line["method"] == "CALL"]

    wait_for(lambda: len(lines()) >= count, f"{count} calls in the log")
    found: dict[str, list[tuple[int, int, str]]] = {}
    for line in lines():
        assert (line["protocol"], line["client"][:10]) == ("RPC", "127.0.0.1:")
        one = line["status"], line["bytes"], line.get("fault", "")
        found.setdefault(line["target"], []).append(one)
        assert line.get("route", "") == (line["target"] if line["target"] in KNOWN else "")
    return found


KNOWN = {"math.add", "breaks", "note", "wait", "use_cancelled"}


def test_calls_of_a_session(serve_h3) -> None:
    server = serve_h3(*MANAGED, "--access-log-format", "json", app=CALLS)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/rpc")
            assert await called(client, session, "math.add", [1, 2]) == [None, 3]
            assert (await called(client, session, "math.add", ["x"]))[0]["type"] == "InvalidParams"
            assert (await called(client, session, "nothing", []))[0]["type"] == "MethodNotFound"
            assert "error" in await asked(client, session, method="breaks", id=1)
            assert (await called(client, session, "use_cancelled", []))[0]["type"] == "Cancelled"
            assert b"InvalidRequest" in await sent(client, session, b"{}")
            session.open(msgspec.msgpack.encode([2, "note", ["uni"]]), uni=True, ends=True)
            await until_told(client, "uni")
            # The client stops one, and leaves another.
            for name in ("one", "two"):
                stream = session.open(msgspec.msgpack.encode([0, 1, "wait", [name]]), ends=True)
                await until_told(client, f"{name} waits")
                if name == "one":
                    wait_for_metrics(server, requests_open=2, sessions=1)
                    client._quic.stop_stream(stream, to_http3(0))
                    client.transmit()
                    await until_told(client, "one is cancelled")

    asyncio.run(main())
    found = calls(server, 9)
    size = len(msgspec.msgpack.encode([1, 7, None, 3]))
    assert sorted((status, fault) for status, _, fault in found["math.add"]) == [
        (200, ""),
        (422, ""),
    ]
    assert (200, size, "") in found["math.add"]
    assert [(status, fault) for status, _, fault in found["nothing"]] == [(404, "")]
    assert [(status, fault) for status, _, fault in found["breaks"]] == [(500, "")]
    assert [(status, fault) for status, _, fault in found["use_cancelled"]] == [(499, "")]
    assert [(status, fault) for status, _, fault in found["-"]] == [(400, "")]
    assert found["note"] == [(200, 0, "")]
    assert found["wait"] == [(499, 0, "client_left")] * 2
    wait_for_metrics(
        server, added=1, refused=1, failed=1, noted=1, cancelled=2, unknown=2,
        requests_open=0, sessions=0, streams=0,
    )  # fmt: skip


def test_calls_of_connections_without_http(serve_h3) -> None:
    server = serve_h3(*MANAGED, "--access-log-format", "json", app=CALLS)

    async def main() -> None:
        async with peer(server) as client:
            assert await client.called("math.add", [1, 2]) == [None, 3]
            assert (await client.called("math.add", ["x"]))[0]["type"] == "InvalidParams"
            client.open(msgspec.msgpack.encode([0, 1, "wait", ["here"]]))
            wait_for_metrics(server, sessions=1, streams=1, requests_open=2, added=1, refused=1)

    asyncio.run(main())
    found = calls(server, 3)
    assert sorted(status for status, _, _ in found["math.add"]) == [200, 422]
    assert found["wait"] == [(499, 0, "client_left")]
    wait_for_metrics(server, cancelled=1, sessions=0, streams=0, requests_open=0)


def test_sessions_streams_and_lost_datagrams(serve_h3) -> None:
    server = serve_h3(*MANAGED, "--webtransport-datagrams-max", "4", app=SESSIONS)

    async def main() -> None:
        async with wt_client(server) as client:
            one, two = await client.session("/slow"), await client.session("/slow")
            wait_for_metrics(server, sessions=2, streams=0, dropped=0)
            stream = one.open(b"first")
            two.open(b"unread")
            wait_for_metrics(server, sessions=2, streams=2)
            assert await client.ended(stream) == b"0 0"
            for n in range(10):
                one.send_datagram(b"%d" % n)
            wait_for_metrics(server, dropped=6)
            one.close(0)
            wait_for_metrics(server, sessions=1, streams=1)

    asyncio.run(main())
    wait_for_metrics(server, sessions=0, streams=0, requests_open=0)


@pytest.mark.parametrize("options", [(), ("--requests-open-max", "9")])
def test_calls_without_an_observer(serve_h3, options) -> None:
    server = serve_h3("--no-access-log", *options, app=CALLS)

    async def main() -> None:
        async with wt_client(server) as client:
            session = await client.session("/rpc")
            for n in range(20):
                assert await called(client, session, "math.add", [n, 1]) == [None, n + 1]

    asyncio.run(main())
