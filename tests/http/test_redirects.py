"""Redirects: what is followed, what goes along, and what does not."""

from __future__ import annotations

import pytest
from citius.http import Client, InvalidURL, Limits, Request, TooLarge, TooManyRedirects
from citius.testing.http import MockReply, MockTransport


def leads(status: int, location: str) -> MockReply:
    return MockReply(status, headers={"location": location}, content="moved")


async def test_only_if_asked_for(mock: MockTransport) -> None:
    mock.add("GET", "http://a/", leads(302, "/x"))
    mock.add("GET", "http://a/x", content="there")
    client = Client("http://a", transport=mock)
    response = await client.get("/")
    assert (response.status_code, response.is_redirect) == (302, True)
    response = await client.get("/", follow_redirects=True)
    assert response.text == "there"
    assert [one.status_code for one in response.history] == [302]
    assert str(response.url) == "http://a/x"
    response = await Client("http://a", transport=mock, follow_redirects=True).get("/")
    assert response.text == "there"
    assert [one.text for one in response.history] == ["moved"]


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "PUT", "PUT"), (302, "DELETE", "DELETE"), (307, "POST", "POST"), (308, "POST", "POST"),
        (301, "GET", "GET"),
    ],
)  # fmt: skip
async def test_methods(mock: MockTransport, status: int, method: str, then: str) -> None:
    mock.add("*", "http://a/", leads(status, "/x"))
    mock.add("*", "http://a/x")
    client = Client("http://a", transport=mock, follow_redirects=True)
    content = None if method in ("GET", "HEAD") else b"body"
    await client.request(method, "/", content=content, headers={"content-type": "x/y"})
    last = mock.calls[-1]
    is_changed = method != then
    assert (last.method, last.content) == (then, b"" if is_changed or content is None else b"body")
    assert ("content-type" in last.headers) is not is_changed


@pytest.mark.parametrize(
    ("location", "keeps"),
    [
        ("/x", True), ("https://a.example/x", True), ("http://a.example:81/x", False),
        ("http://b.example/x", False),
        ("http://sub.a.example/x", False), ("https://a.example:444/x", False),
        ("http://user:w@b.example/x", False),
    ],
)  # fmt: skip
async def test_credentials_stay_with_their_origin(
    mock: MockTransport, location: str, keeps: bool
) -> None:
    def sign(request: Request) -> None:
        request.headers["x-signature"] = "s"

    names = {"authorization", "cookie", "x-api-key", "x-signature", "proxy-authorization"}
    mock.add("*", "http://a.example/", leads(307, location))
    mock.add("*", "*")
    mock.routes.append(mock.routes.pop(0))
    client = Client(transport=mock, follow_redirects=True, auth=sign)
    headers = {
        "Authorization": "t",
        "Cookie": "c=1",
        "X-Api-Key": "k",
        "Proxy-Authorization": "p",
        "X-Plain": "v",
    }
    await client.get("http://a.example/", headers=headers)
    last = mock.calls[-1]
    assert last.url.endswith("/x")
    assert last.headers["x-plain"] == "v"
    assert last.headers.keys() & names == (names if keeps else set())


async def test_too_many(mock: MockTransport) -> None:
    mock.add("*", "*", leads(302, "/"))
    client = Client("http://a", transport=mock, follow_redirects=True, redirects_max=3)
    with pytest.raises(TooManyRedirects, match="more than 3") as caught:
        await client.get("/")
    assert len(mock.calls) == 4
    assert caught.value.origin == "http://a"


async def test_to_something_that_is_not_called(mock: MockTransport) -> None:
    client = Client("http://a", transport=mock, follow_redirects=True)
    for location in ("file:///etc/passwd", "http://b c/", "http:///x"):
        mock.add("*", "*", leads(302, location))
        with pytest.raises(InvalidURL) as caught:
            await client.post("/", content=b"a")
        assert not caught.value.is_unsent, "the request has been carried out"
        assert (caught.value.method, caught.value.url) == ("POST", "http://a/")
    mock.add("*", "*", MockReply(302, content="no location"))
    assert (await client.get("/")).text == "no location"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        (b"/\xc3\xbc", "http://a/%C3%BC"), (b"/\xfc", "http://a/%FC"),
        (b"http://b\xc3\xbc.example/x", "http://xn--b-eha.example/x"),
    ],
)  # fmt: skip
async def test_places_that_are_not_in_ascii(
    mock: MockTransport, location: bytes, target: str
) -> None:
    """Their bytes are those of UTF-8; what is not is escaped as it is."""
    mock.add("*", "*", leads(302, location.decode("latin-1")), MockReply())
    client = Client("http://a", transport=mock, follow_redirects=True)
    await client.get("/")
    assert mock.calls[-1].url == target


async def test_streams_follow(mock: MockTransport) -> None:
    mock.add("GET", "http://a/", leads(302, "/x"))
    mock.add("GET", "http://a/x", content=[b"a", b"b"])
    client = Client("http://a", transport=mock)
    async with client.stream("GET", "/", follow_redirects=True) as response:
        assert [piece async for piece in response.iter_bytes()] == [b"a", b"b"]


async def test_hooks_see_each_request(mock: MockTransport) -> None:
    seen: list[str] = []

    async def ask(request: Request) -> None:
        seen.append(str(request.url))
        request.headers["x-hook"] = "1"

    mock.add("GET", "http://a/", leads(302, "/x"))
    mock.add("GET", "http://a/x")
    client = Client(
        "http://a", transport=mock, follow_redirects=True,
        event_hooks={"request": [ask], "response": [lambda response: seen.append(str(response.status_code))]},
    )  # fmt: skip
    await client.get("/")
    assert seen == ["http://a/", "302", "http://a/x", "200"]
    assert mock.calls[-1].headers["x-hook"] == "1"


async def test_redirects_together_have_what_one_response_may_have(mock: MockTransport) -> None:
    """Their content is kept with the response: 20 times the limit."""
    mock.add("GET", "http://a/", status_code=302, headers={"location": "/b"}, content=b"x" * 600)
    mock.add("GET", "http://a/b", status_code=302, headers={"location": "/c"}, content=b"x" * 500)
    mock.add("GET", "http://a/c", content=b"x" * 900)
    for limit in (1000, 1100):
        client = Client(transport=mock, follow_redirects=True, limits=Limits(body_bytes_max=limit))
        if limit == 1000:
            with pytest.raises(TooLarge, match="the redirects have more than 1000 bytes"):
                await client.get("http://a/")
        else:
            assert len((await client.get("http://a/")).history) == 2
        async with client.stream("GET", "http://a/") as response:
            assert len(await response.read()) == 900
