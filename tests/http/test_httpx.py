"""httpx's clients over the client's connections: what they get, and the errors they expect."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from citius.errors import ChannelMisuse, ConfigError
from citius.http import Client, Limits, errors
from citius.http.httpx import SyncTransport, Transport, install
from citius.testing.http import MockReply, MockTransport
from http_peer import Peer, Talk, answering


def asynchronous(mock: MockTransport) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=Transport(Client(transport=mock)))


def synchronous(mock: MockTransport) -> httpx.Client:
    return httpx.Client(transport=SyncTransport(Client(transport=mock)))


async def test_requests(mock: MockTransport) -> None:
    mock.add(
        "POST",
        "*",
        lambda call: MockReply(201, headers=[("X", "1"), ("x", "2")], content=call.content),
    )
    async with asynchronous(mock) as client:
        response = await client.post("http://a:81/x?y=ü", json={"a": 1}, headers={"X-A": "b"})
        assert (response.status_code, response.json(), response.http_version) == (
            201,
            {"a": 1},
            "HTTP/1.1",
        )
        assert response.headers.get_list("x") == ["1", "2"]
        call = mock.calls[-1]
        assert call.url == "http://a:81/x?y=%C3%BC"
        assert call.headers["x-a"] == "b"
        assert "content-length" not in call.headers  # the framing is the connection's

        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            yield b"b"

        assert (await client.post("http://a/", content=pieces())).content == b"ab"
        assert (await client.post("http://a/", files={"f": b"x"})).content.count(b"x") >= 1
        assert (await client.post("http://a/")).content == b""


async def test_streams(mock: MockTransport) -> None:
    mock.add("GET", "*", content=[b"a\n", b"b"])
    async with asynchronous(mock) as client, client.stream("GET", "http://a/") as response:
        assert [line async for line in response.aiter_lines()] == ["a", "b"]


def test_the_other_client(mock: MockTransport) -> None:
    mock.add("*", "*", lambda call: MockReply(content=call.content))

    def pieces() -> Iterator[bytes]:
        yield b"a"
        yield b"b"

    with synchronous(mock) as client:
        assert client.post("http://a/", content=pieces()).content == b"ab"
        assert client.post("http://a/", json=1).json() == 1
        with client.stream("POST", "http://a/", content=b"xy") as response:
            assert list(response.iter_bytes()) == [b"xy"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.ConnectTimeout, httpx.ConnectTimeout), (errors.ReadTimeout, httpx.ReadTimeout),
        (errors.WriteTimeout, httpx.WriteTimeout), (errors.PoolTimeout, httpx.PoolTimeout),
        (errors.ConnectError, httpx.ConnectError), (errors.TlsError, httpx.ConnectError),
        (errors.ProxyError, httpx.ProxyError), (errors.AddressRefused, httpx.ConnectError),
        (errors.ReadError, httpx.ReadError), (errors.WriteError, httpx.WriteError),
        (errors.RemoteProtocolError, httpx.RemoteProtocolError),
        (errors.LocalProtocolError, httpx.LocalProtocolError), (errors.TooLarge, httpx.RemoteProtocolError),
        (errors.ClientClosed, httpx.NetworkError),
    ],
)  # fmt: skip
async def test_errors(
    mock: MockTransport, error: type[errors.RequestError], kind: type[Exception]
) -> None:
    mock.add("GET", "*", error("why"))
    async with asynchronous(mock) as client:
        with pytest.raises(kind, match="why") as caught:
            await client.get("http://a/")
        assert type(caught.value) is kind
        assert caught.value.request.url == "http://a/"  # pyright: ignore
        mock.add("GET", "*", content=[b"a", error("why")])
        with pytest.raises(kind, match="why"):
            await client.get("http://a/")

    def here() -> None:
        with synchronous(mock) as client, pytest.raises(kind, match="why"):
            client.get("http://a/")

    await asyncio.to_thread(here)


async def test_an_error_of_the_content_stays_what_it_is(mock: MockTransport) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"a"
        raise LookupError("own")

    mock.add("POST", "*", errors.WriteError("the upload was given up"))
    async with asynchronous(mock) as client:
        with pytest.raises(LookupError, match="own"):
            await client.post("http://a/", content=pieces())


async def test_times(mock: MockTransport) -> None:
    mock.add("GET", "*")
    async with asynchronous(mock) as client:
        await client.get("http://a/", timeout=httpx.Timeout(1, read=2, pool=None))
    assert mock.calls[-1].deadlines == (1, 2, 1, None, None)


async def test_what_it_cannot_do(mock: MockTransport) -> None:
    async with asynchronous(mock) as client:
        with pytest.raises(httpx.UnsupportedProtocol):
            await client.get("ftp://a/")
        with pytest.raises(httpx.UnsupportedProtocol, match="sni_hostname"):
            await client.get("https://a/", extensions={"sni_hostname": "b"})
    with pytest.raises(ConfigError, match="options of one"):
        Transport(Client(), verify=False)


async def test_the_default() -> None:
    undo = install()
    try:
        client, other = (
            httpx.AsyncClient(http2=True, proxy="http://u:w@p:1"),
            httpx.Client(verify=False),
        )
        assert isinstance(client._transport, Transport)
        assert isinstance(other._transport, SyncTransport)
        assert isinstance(next(iter(client._mounts.values())), Transport)
        kept = httpx.AsyncClient(verify=ssl.create_default_context())
        assert type(kept._transport) is httpx.AsyncHTTPTransport
        given = httpx.MockTransport(lambda request: httpx.Response(204))
        assert httpx.Client(transport=given)._transport is given
    finally:
        undo()
    assert type(httpx.AsyncClient()._transport) is httpx.AsyncHTTPTransport


async def test_what_the_default_leaves_to_httpx() -> None:
    """A proxy that the client's connections cannot have as httpx would."""
    undo = install()
    try:
        for proxy in (
            "https://p:1",
            httpx.Proxy("http://p:1", headers={"x-token": "1"}),
            httpx.Proxy("https://p:1", ssl_context=ssl.create_default_context()),
        ):
            client = httpx.AsyncClient(proxy=proxy)
            assert type(next(iter(client._mounts.values()))) is httpx.AsyncHTTPTransport
        assert isinstance(httpx.AsyncClient()._transport, Transport)
    finally:
        undo()


KEPT_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, True),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
]


@pytest.mark.parametrize("module", [httpx, pytest.importorskip("httpx2")])
async def test_transports_that_others_make_of_its_classes_are_ours(module: Any) -> None:
    """As Anthropic's SDK makes them, for keep-alive and for the proxies of the environment."""
    undo = install(module)
    try:
        with Peer(answering()) as peer:
            url = f"http://127.0.0.1:{peer.port}/"
            limits = module.Limits(max_connections=3, max_keepalive_connections=1)
            made = module.AsyncHTTPTransport(True, None, limits=limits, socket_options=KEPT_ALIVE)
            by_proxy = module.AsyncHTTPTransport(proxy=url)
            mounts = {"http://elsewhere.test": by_proxy}
            async with module.AsyncClient(transport=made, mounts=mounts) as client:
                assert isinstance(made, Transport)
                assert isinstance(made, module.AsyncHTTPTransport)
                assert (await client.get(url)).text == "ok"
                assert isinstance(by_proxy, Transport)
                assert (await client.get("http://elsewhere.test/")).text == "ok"
            other = module.HTTPTransport(retries=0, socket_options=KEPT_ALIVE)
            assert isinstance(other, SyncTransport)

            def ask() -> str:
                with other, module.Client(transport=other) as client:
                    return client.get(url).text

            assert await asyncio.to_thread(ask) == "ok"
            assert peer.accepted == 3
    finally:
        undo()
    assert type(module.HTTPTransport()) is module.HTTPTransport


@pytest.mark.parametrize(
    "option",
    [
        {"retries": 1},
        {"uds": "/none"},
        {"local_address": "127.0.0.1"},
        {"socket_options": [(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)]},
    ],
)
def test_what_of_such_transports_is_left_to_httpx(
    option: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Own(httpx.HTTPTransport):
        pass

    undo = install()
    try:
        assert type(httpx.HTTPTransport(**option)) is httpx.HTTPTransport
        assert type(Own()) is Own
    finally:
        undo()
    assert f"keeps its connections: it has {next(iter(option))}" in caplog.text


async def test_without_http1_the_first_bytes_are_of_http2() -> None:
    """What httpx sends without TLS when it has ``http2`` alone (RFC 9113 §3.3)."""
    seen: list[str | None] = []

    def act(talk: Talk) -> None:
        got = talk.request()
        seen.append(got and got[0])

    undo = install()
    try:
        with Peer(act) as peer:
            made = httpx.AsyncHTTPTransport(http1=False, http2=True)
            async with httpx.AsyncClient(transport=made) as client:
                with pytest.raises(httpx.TransportError):
                    await client.get(f"http://127.0.0.1:{peer.port}/")
    finally:
        undo()
    assert seen[0] == "PRI * HTTP/2.0"


async def test_connections_that_are_not_to_be_kept_are_not() -> None:
    undo = install()
    try:
        with Peer(answering()) as peer:
            limits = httpx.Limits(max_keepalive_connections=0)
            async with httpx.AsyncClient(limits=limits) as client:
                for _ in range(3):
                    await client.get(f"http://127.0.0.1:{peer.port}/")
            assert peer.accepted == 3
    finally:
        undo()


def test_where_no_asyncio_loop_runs_requests_take_its_own_transport(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Programs with trio go on after ``install()``."""
    closed: list[bool] = []

    async def handle(self: object, request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="own")

    async def close(self: object) -> None:
        closed.append(True)

    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", handle)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "aclose", close)
    undo = install()
    try:
        client = httpx.AsyncClient(trust_env=False)
    finally:
        undo()
    assert isinstance(client._transport, Transport)

    async def ask() -> str:
        async with client:
            return (await client.get("http://a/")).text

    with pytest.raises(StopIteration) as ended:
        ask().send(None)
    assert (ended.value.value, closed) == ("own", [True])


async def test_a_client_without_await_goes_on_in_a_coroutine_after_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Libraries call so; a transport that a program gives itself refuses it."""
    closed: list[bool] = []
    monkeypatch.setattr(
        httpx.HTTPTransport, "handle_request", lambda self, request: httpx.Response(200, text="own")
    )
    monkeypatch.setattr(httpx.HTTPTransport, "close", lambda self: closed.append(True))
    undo = install()
    try:
        client = httpx.Client(trust_env=False)
    finally:
        undo()
    assert isinstance(client._transport, SyncTransport)
    with client:
        assert client.get("http://a/").text == "own"
    assert closed == [True]
    with httpx.Client(transport=SyncTransport()) as own, pytest.raises(ChannelMisuse):
        own.get("http://a/")


@pytest.mark.parametrize("kind", [httpx.AsyncClient, httpx.Client])
def test_a_client_that_keeps_its_own_transport_is_told_of_once(
    kind: type[httpx.AsyncClient | httpx.Client], caplog: pytest.LogCaptureFixture
) -> None:
    undo = install()
    try:
        clients = [kind(verify=ssl.create_default_context(), trust_env=False) for _ in range(2)]
        kind(proxy="https://proxy.test:1", trust_env=False)
    finally:
        undo()
    assert not isinstance(clients[0]._transport, (Transport, SyncTransport))  # pyright: ignore
    of_context, of_proxy = (record.getMessage() for record in caplog.records)
    made = kind.__name__.replace("Client", "HTTPTransport")
    place = rf"httpx\.{made} \({re.escape(__file__)}:\d+\) keeps its connections: its "
    assert re.match(place + "verify is an ssl.SSLContext", of_context)
    assert re.match(place + "proxy has TLS", of_proxy)


async def test_what_extensions_say_and_hear() -> None:
    """The target is sent as it is given; the response has the reason, and where it came from."""
    seen: list[str] = []

    def act(talk: Talk) -> None:
        while (got := talk.request()) is not None:
            seen.append(got[0])
            talk.say(b"HTTP/1.1 200 Fine\r\ncontent-length: 2\r\n\r\nok")

    with Peer(act) as peer:
        async with httpx.AsyncClient(transport=Transport(trust_env=False)) as client:
            response = await client.get(
                f"http://127.0.0.1:{peer.port}/", extensions={"target": b"/a%2fb?c"}
            )
            assert response.reason_phrase == "Fine"
            stream = response.extensions["network_stream"]
            assert stream.get_extra_info("server_addr") == ("127.0.0.1", peer.port)
            assert stream.get_extra_info("ssl_object") is None
            with pytest.raises(httpx.LocalProtocolError):
                await client.get(
                    f"http://127.0.0.1:{peer.port}/", extensions={"target": b"/ HTTP/1.1\r\nx: y"}
                )
    assert seen == ["GET /a%2fb?c HTTP/1.1"]


async def test_a_server_that_answers_before_it_has_the_content_is_heard_quietly(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What becomes of the rest of the content is no exception that no code has looked at."""

    def act(talk: Talk) -> None:
        talk.socket.recv(10)
        talk.say(b"HTTP/1.1 413 Large\r\ncontent-length: 2\r\n\r\nno")

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(1000):
            yield b"x" * 65536
            await asyncio.sleep(0)
        raise LookupError("own")

    with Peer(act) as peer:
        async with httpx.AsyncClient(transport=Transport(trust_env=False)) as client:
            response = await client.post(f"http://127.0.0.1:{peer.port}/", content=pieces())
            assert (response.status_code, response.text) == (413, "no")
        del response
        gc.collect()
        await asyncio.sleep(0)
    assert "never retrieved" not in caplog.text


async def test_its_own_cookies_and_redirects_are_its_own(mock: MockTransport) -> None:
    mock.add(
        "GET", "http://a/", MockReply(302, headers=[("location", "/x"), ("set-cookie", "s=1")])
    )
    mock.add("GET", "http://a/x", headers={"content-encoding": "identity"}, content="there")
    async with asynchronous(mock) as client:
        response = await client.get("http://a/", follow_redirects=True)
    assert response.text == "there"
    assert mock.calls[-1].headers["cookie"] == "s=1"


async def test_callers_that_leave_take_no_place_with_them() -> None:
    """Scale, last paragraph: handlers whose clients had left used up the pool of httpx' own transport."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
                await asyncio.sleep(0)
                writer.write(b"ok")
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with (
        server,
        httpx.AsyncClient(transport=Transport(limits=Limits(connections_max=3))) as client,
    ):
        dice = random.Random(1)
        for _ in range(60):
            callers = [asyncio.ensure_future(client.get(url)) for _ in range(6)]
            for caller in callers:
                for _ in range(dice.randrange(4)):
                    await asyncio.sleep(0)
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
        async with asyncio.timeout(20):
            found = await asyncio.gather(*(client.get(url) for _ in range(6)))
        assert [one.text for one in found] == ["ok"] * 6
