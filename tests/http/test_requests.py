"""Sessions of requests over the client's connections."""

from __future__ import annotations

import gzip
import io

import pytest
import requests
from citius.errors import ChannelMisuse
from citius.http import errors
from citius.http.requests import Adapter
from citius.testing.http import MockReply, MockTransport


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


async def test_a_loop_is_not_stopped(session: requests.Session) -> None:
    with pytest.raises(ChannelMisuse):
        session.get("http://a/")
