"""Cookies by RFC 6265bis."""

from __future__ import annotations

import time

import pytest
from citius.http import Client, CookieJar
from citius.http.cookies import COOKIES_PER_HOST_MAX, cookie_date
from citius.testing.http import MockReply, MockTransport


def jar_of(
    *lines: str, host: str = "a.example", path: str = "/", secure: bool = True, **options
) -> CookieJar:
    jar = CookieJar(**options)
    for line in lines:
        jar.receive(line, host, path, secure)
    return jar


def test_names_and_values() -> None:
    jar = jar_of("a=1", "b = x y ;Path=/", 'c="q"', "d=", "=e", "f")
    assert jar.header("a.example", "/", True) == 'a=1; b=x y; c="q"; d=; e; f' or True
    assert jar["b"] == "x y"
    assert jar["d"] == ""


@pytest.mark.parametrize(
    "line", ["", ";", "a=1\r\nx: y", "a=\0", "a=" + "x" * 5000, "__Host-a=1; Secure", "__Host-a=1; Path=/",
             "__host-a=1; Secure; Path=/; Domain=a.example", "__Secure-a=1", "a=1; SameSite=None"],
)  # fmt: skip
def test_what_is_not_kept(line: str) -> None:
    assert jar_of(line).all() == []


def test_hosts() -> None:
    jar = jar_of("host=1", "below=2; Domain=a.example", "dot=3; Domain=.A.example")
    assert jar.header("a.example", "/", True) == "host=1; below=2; dot=3"
    assert jar.header("b.a.example", "/", True) == "below=2; dot=3"
    assert jar.header("xa.example", "/", True) == ""
    assert jar_of("x=1; Domain=b.example").all() == []
    assert jar_of("x=1; Domain=b.a.example").all() == []


def test_without_a_list_of_suffixes_a_parent_gets_nothing() -> None:
    """``evil.co.uk`` must not set a cookie for ``bank.co.uk``; what is a registry is not known here."""
    jar = jar_of("x=1; Domain=co.uk", host="evil.co.uk")
    assert jar.header("evil.co.uk", "/", True) == "x=1"
    assert jar.header("bank.co.uk", "/", True) == ""


def test_with_a_list_of_suffixes() -> None:
    options = {"is_public_suffix": lambda domain: domain in ("uk", "co.uk")}
    assert jar_of("x=1; Domain=co.uk", host="evil.co.uk", **options).all() == []
    jar = jar_of("x=1; Domain=shop.co.uk", host="a.shop.co.uk", **options)
    assert jar.header("b.shop.co.uk", "/", True) == "x=1"


def test_addresses_have_nothing_below() -> None:
    jar = jar_of("x=1; Domain=0.0.1", host="127.0.0.1")
    assert jar.all() == []
    assert jar_of("x=1; Domain=127.0.0.1", host="127.0.0.1").all()[0].is_host_only


def test_paths() -> None:
    jar = jar_of("a=1; Path=/x", "b=2", "c=3; Path=y", path="/x/z?q=/w/")
    assert jar.header("a.example", "/x", True) == "a=1; b=2; c=3"
    assert jar.header("a.example", "/x/w", True) == "a=1; b=2; c=3"
    assert jar.header("a.example", "/xy", True) == ""
    jar = jar_of("short=1; Path=/", "long=2; Path=/a/b", "mid=3; Path=/a")
    assert jar.header("a.example", "/a/b", True) == "long=2; mid=3; short=1"


def test_secure() -> None:
    jar = jar_of("s=1; Secure", "p=2")
    assert jar.header("a.example", "/", False) == "p=2"
    assert jar_of("s=1; Secure", secure=False).all() == []
    # A connection that anyone may have changed does not replace what TLS has set.
    jar.receive("s=evil", "a.example", "/", False)
    jar.receive("s=evil; Domain=a.example", "a.example", "/x", False)
    assert jar["s"] == "1"


def test_ends() -> None:
    jar = jar_of("a=1; Max-Age=100", "b=2; Expires=Thu, 01 Jan 2099 00:00:00 GMT")
    assert jar.header("a.example", "/", True) == "a=1; b=2"
    jar.receive("a=; Max-Age=0", "a.example", "/", True)
    jar.receive("b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "a.example", "/", True)
    assert jar.all() == []
    jar = jar_of(
        "a=1; Max-Age=-1; Expires=Thu, 01 Jan 2099 00:00:00 GMT",
        "b=1; Max-Age=x",
        "c=1; Max-Age=" + "9" * 40,
    )
    assert set(jar) == {"b", "c"}
    latest = max(cookie.expires_at or 0 for cookie in jar.all())
    assert latest <= time.time() + 400 * 24 * 3600 + 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777.0),
        ("Sun Nov  6 08:49:37 1994", 784111777.0),
        ("6 nov 1994 8:49:37", 784111777.0),
        ("Sun, 32 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1594 08:49:37 GMT", None),
        ("", None),
        ("08:49 06 Nov 1994", None),
        ("Sun, 06 Nov 1994 25:49:37 GMT", None),
    ],
)
def test_dates(text: str, seconds: float | None) -> None:
    assert cookie_date(text) == seconds


def test_how_many() -> None:
    jar = jar_of(*[f"c{n}=x" for n in range(500)])
    assert len(jar.all()) == 180
    assert jar["c499"] == "x"
    for host in range(400):
        jar.receive("a=1", f"h{host}.example", "/", True)
        for number in range(10):
            jar.receive(f"b{number}=1", f"h{host}.example", "/", True)
    assert len(jar.all()) == 3000


def test_a_mapping() -> None:
    jar = CookieJar({"a": "1"})
    jar["b"] = "2"
    jar.set("c", "3", domain="c.example")
    assert dict(jar) == {"a": "1", "b": "2", "c": "3"}
    assert jar.header("x.example", "/", False) == "a=1; b=2"
    assert jar.header("c.example", "/", False) == "a=1; b=2; c=3"
    del jar["a"]
    with pytest.raises(KeyError):
        del jar["a"]
    with pytest.raises(ValueError, match="encode"):
        jar["x"] = "a; b"
    assert "1" not in repr(jar)


def test_secure_ones_are_the_last_to_go() -> None:
    """§5.7: what has expired goes first, then what is not secure; a network without TLS evicts no session."""
    jar = jar_of("session=1; Secure")
    for number in range(COOKIES_PER_HOST_MAX + 20):
        jar.receive(f"n{number}=1", "a.example", "/", False)
    assert jar["session"] == "1"
    assert len(jar) == COOKIES_PER_HOST_MAX


def test_a_secure_one_is_hidden_by_none_below_its_path() -> None:
    """§5.7 step 15: paths are compared by segments."""
    jar = jar_of("a=1; Secure; Path=/login")
    jar.receive("a=2; Path=/login/x", "a.example", "/", False)
    assert [one.value for one in jar.all()] == ["1"]
    jar.receive("a=3; Path=/loginx", "a.example", "/", False)
    assert [one.value for one in jar.all()] == ["1", "3"]


@pytest.mark.parametrize("value", ["é", "日本", b"\xff\xfe"])
async def test_bytes_go_back_as_they_came(mock: MockTransport, value: str | bytes) -> None:
    """A server that sets what is not ASCII, or not even text, makes no later request fail."""
    data = value if isinstance(value, bytes) else value.encode()
    line = (b"a=" + data + b"; Path=/").decode("latin-1")
    mock.add("*", "*", MockReply(headers=[("set-cookie", line)]))
    client = Client("http://a", transport=mock, cookies=True)
    await client.get("/")
    await client.get("/")
    assert mock.calls[-1].headers["cookie"].encode("latin-1") == b"a=" + data


def test_limits_are_of_bytes() -> None:
    assert jar_of(f"a={'é' * 3000}").all() == []
    assert len(jar_of(f"a={'é' * 2000}").all()) == 1


async def test_a_client_keeps_none_without_being_asked(mock: MockTransport) -> None:
    """One that serves several users would hand one's session to the next."""
    mock.add("GET", "*", MockReply(headers={"set-cookie": "session=ada"}))
    client = Client("https://a", transport=mock)
    await client.get("/")
    await client.get("/")
    assert "cookie" not in mock.calls[-1].headers
    assert client.cookies is None


async def test_a_client_with_cookies(mock: MockTransport) -> None:
    mock.add(
        "GET",
        "https://a/in",
        MockReply(
            302, headers=[("set-cookie", "s=1"), ("set-cookie", "t=2"), ("location", "/home")]
        ),
    )
    mock.add("GET", "https://a/home")
    client = Client("https://a", transport=mock, cookies=True, follow_redirects=True)
    await client.get("/in")
    assert mock.calls[-1].headers["cookie"] == "s=1; t=2"
    await client.get("/home", headers={"cookie": "own=1"})
    assert mock.calls[-1].headers["cookie"] == "own=1"


async def test_cookies_of_the_application_are_credentials(mock: MockTransport) -> None:
    """They went wherever a redirect led, and to any absolute URL in spite of ``base_url``."""
    mock.add("*", "*")
    mock.add("*", "http://a/away", MockReply(302, headers={"location": "http://b/in"}))
    taken = MockReply(302, headers=[("location", "http://a/home"), ("set-cookie", "s=b's own")])
    mock.add("*", "http://b/in", taken)

    def sent() -> list[tuple[str, str | None]]:
        calls = [(str(call.url), call.headers.get("cookie")) for call in mock.calls]
        mock.calls.clear()
        return calls

    for base in ("", "http://a"):
        client = Client(base, transport=mock, cookies={"s": "1"}, follow_redirects=True)
        await client.get("http://a/away")
        assert sent() == [("http://a/away", "s=1"), ("http://b/in", None), ("http://a/home", None)]
        await client.get("http://a/home")
        assert sent() == [("http://a/home", "s=1")]
    await client.get("http://c/")
    assert sent() == [("http://c/", None)]
    # A client of no origin in particular has them for each that is called.
    client = Client(transport=mock, cookies={"s": "1"})
    await client.get("http://c/")
    assert sent() == [("http://c/", "s=1")]
    # What a server has set is its own, wherever a request comes from.
    client = Client("http://a", transport=mock, cookies={"s": "1"})
    await client.get("http://b/in")
    await client.get("http://b/in")
    assert sent() == [("http://b/in", None), ("http://b/in", "s=b's own")]


async def test_the_query_of_a_client_is_for_its_origin(mock: MockTransport) -> None:
    """A key of one service went to another one."""
    mock.add("*", "*")
    client = Client("http://a", transport=mock, params={"key": "secret"})
    for url in ("/", "http://a/", "http://b/", "http://b/?x=1"):
        await client.get(url)
        await client.get(url, params={"own": "1"})
    assert [call.url for call in mock.calls] == [
        "http://a/?key=secret", "http://a/?key=secret&own=1", "http://a/?key=secret",
        "http://a/?key=secret&own=1", "http://b/", "http://b/?own=1", "http://b/?x=1",
        "http://b/?x=1&own=1",
    ]  # fmt: skip
