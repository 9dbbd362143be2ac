"""Sessions of requests over the client's connections."""

from __future__ import annotations

import gzip
import io
from typing import Any

import pytest
import requests
import urllib3
from citius.errors import ChannelMisuse
from citius.http import errors
from citius.http.requests import Adapter
from citius.testing.http import MockReply, MockTransport
from http_peer import OK, Peer, Talk
from requests.adapters import BaseAdapter, HTTPAdapter
from urllib3.util import SKIP_HEADER


@pytest.fixture
def session(mock: MockTransport) -> requests.Session:
    made = requests.Session()
    made.trust_env = False
    for scheme in ("http://", "https://"):
        made.mount(scheme, Adapter(transport=mock))
    return made


def test_requests(session: requests.Session, mock: MockTransport) -> None:
    mock.add(
        "POST",
        "*",
        lambda call: MockReply(201, headers=[("X", "1"), ("x", "2")], content=call.content),
    )
    response = session.post(
        "http://a:81/x?y=ü", json={"a": 1}, headers={"X-A": "b"}, timeout=(1, 2)
    )
    assert (response.status_code, response.json(), response.headers["X"]) == (201, {"a": 1}, "1, 2")
    call = mock.calls[-1]
    assert (call.url, call.headers["x-a"]) == ("http://a:81/x?y=%C3%BC", "b")
    assert call.deadlines == (1, 2, 2, 1, None)
    assert "content-length" not in call.headers
    assert session.post("http://a/", data=io.BytesIO(b"file")).content == b"file"
    assert session.post("http://a/", data=iter([b"a", b"b"])).content == b"ab"
    assert b'filename="f"' in session.post("http://a/", files={"f": b"x"}).content
    assert session.post("http://a/", data={"k": "v"}).content == b"k=v"
    assert session.post("http://a/").content == b""


@pytest.mark.parametrize("adapter", [Adapter, HTTPAdapter])
def test_what_is_accepted_is_said_unless_it_is_skipped(
    adapter: type[BaseAdapter],
) -> None:
    """``identity`` where a session has no such field (``HTTPConnection.putrequest``), as SDKs make them."""
    seen: list[tuple[bytes | None, bool]] = []

    def act(talk: Talk) -> None:
        while talk.request() is not None:
            fields = talk.fields
            seen.append((fields.get(b"accept-encoding"), b"user-agent" in fields))
            talk.say(OK)

    given: Any = (
        {"Accept-Encoding": None},
        {"Accept-Encoding": SKIP_HEADER, "User-Agent": SKIP_HEADER},
    )
    with Peer(act) as peer, requests.Session() as session:
        session.trust_env = False
        session.mount("http://", adapter())
        for headers in given:
            session.get(f"http://127.0.0.1:{peer.port}/", headers=headers)
    assert seen == [(b"identity", True), (None, False)]


def test_content(session: requests.Session, mock: MockTransport) -> None:
    data = gzip.compress(b"line 1\nline 2")
    mock.add("GET", "*", headers={"content-encoding": "gzip"}, content=[data[:5], data[5:]])
    assert session.get("http://a/").text == "line 1\nline 2"
    with session.get("http://a/", stream=True) as response:
        assert list(response.iter_lines()) == [b"line 1", b"line 2"]
    with session.get("http://a/", stream=True) as response:
        assert response.raw.read() == data
    mock.add("HEAD", "*", headers={"content-length": "100"})
    assert session.head("http://a/").content == b""


def test_cookies_and_redirects(session: requests.Session, mock: MockTransport) -> None:
    mock.add(
        "GET",
        "http://a.example/",
        MockReply(302, headers=[("location", "/x"), ("Set-Cookie", "s=1")]),
    )
    mock.add("GET", "http://a.example/x", content="there")
    response = session.get("http://a.example/")
    assert (response.text, len(response.history)) == ("there", 1)
    assert mock.calls[-1].headers["cookie"] == "s=1"
    assert session.cookies["s"] == "1"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (errors.ConnectTimeout, requests.ConnectTimeout), (errors.PoolTimeout, requests.ConnectTimeout),
        (errors.ReadTimeout, requests.ReadTimeout), (errors.TlsError, requests.exceptions.SSLError),
        (errors.ProxyError, requests.exceptions.ProxyError), (errors.ConnectError, requests.ConnectionError),
        (errors.ReadError, requests.ConnectionError),
    ],
)  # fmt: skip
def test_errors(
    session: requests.Session, mock: MockTransport, error: type[Exception], kind: type[Exception]
) -> None:
    mock.add("GET", "*", error("why"))
    with pytest.raises(kind, match="why") as caught:
        session.get("http://a/")
    assert type(caught.value) is kind
    mock.add("GET", "*", content=[b"a", error("why")])
    with pytest.raises(requests.RequestException, match="why"):
        session.get("http://a/")


def test_a_time_that_is_over_within_the_content(
    session: requests.Session, mock: MockTransport
) -> None:
    mock.add("GET", "*", content=[b"a", errors.ReadTimeout("why")])
    with pytest.raises(requests.ConnectionError, match="why") as caught:
        session.get("http://a/")
    assert type(caught.value) is requests.ConnectionError


def test_times_of_urllib3(session: requests.Session, mock: MockTransport) -> None:
    mock.add("GET", "*")
    given: Any = urllib3.Timeout(connect=1, read=2)
    session.get("http://a/", timeout=given)
    assert mock.calls[-1].deadlines == (1, 2, 2, 1, None)
    session.get("http://a/", timeout=urllib3.Timeout())  # type: ignore[arg-type]  # pyright: ignore
    assert mock.calls[-1].deadlines == (None, None, None, None, None)


def test_a_redirect_by_a_proxy_names_its_user_once() -> None:
    """A session sets the field for the next request, and the client does."""
    heads: list[bytes] = []

    def act(talk: Talk) -> None:
        while data := talk.read():
            heads.append(data)
            moved = (
                b"HTTP/1.1 302 Moved\r\nlocation: http://b.example/\r\ncontent-length: 0\r\n\r\n"
            )
            talk.say(moved if b"a.example" in data else OK)

    session = requests.Session()
    session.trust_env = False
    session.mount("http://", Adapter())
    with Peer(act) as peer:
        proxies = {"http": f"http://user:word@127.0.0.1:{peer.port}"}
        assert session.get("http://a.example/", proxies=proxies).text == "ok"
        session.close()
    assert [head.lower().count(b"proxy-authorization") for head in heads] == [1, 1]


async def test_a_loop_is_not_stopped(session: requests.Session) -> None:
    with pytest.raises(ChannelMisuse):
        session.get("http://a/")
