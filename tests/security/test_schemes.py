"""Security schemes: who gets in, what a 401 says, and credentials that are no good."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

import pytest
from citius import App, ConfigError, Depends, Request
from citius.testing import Client, TestResponse
from citius.web.security import (
    APIKey,
    Authenticate,
    Basic,
    Bearer,
    Principal,
    Requires,
    Scheme,
    principal,
)
from rig import Server

ME = Principal("me", frozenset(("read",)))


def check(token: str) -> Principal | None:
    return ME if token == "good" else None


async def check_later(token: str) -> Principal | None:
    await asyncio.sleep(0)
    return check(token)


class CheckLater:
    async def __call__(self, token: str) -> Principal | None:
        return await check_later(token)


def check_user(user: str, password: str) -> Principal | None:
    return Principal(user) if password == "pä:ss" else None


async def check_user_later(user: str, password: str) -> Principal | None:
    await asyncio.sleep(0)
    return check_user(user, password)


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def ask(scheme: Scheme, headers: dict[str, str] | None = None, path: str = "/") -> TestResponse:
    app = App()
    app.middleware(Authenticate(scheme, exempt=["/open"]))
    app.get("/")(lambda request: principal(request).id)
    app.get("/open")(lambda: "open")
    with Client(app) as client:
        return client.get(path, headers=headers or {})


@pytest.mark.parametrize("function", [check, check_later, CheckLater()])
def test_bearer(function: Any) -> None:
    scheme = Bearer(function, realm="shop")
    assert ask(scheme, {"authorization": "Bearer good"}).text == "me"
    assert ask(scheme, {"authorization": "bearer  good "}).text == "me"
    missing = ask(scheme)
    assert (missing.status_code, missing.headers["www-authenticate"]) == (
        401,
        'Bearer realm="shop"',
    )
    wrong = ask(scheme, {"authorization": "Bearer bad"})
    expected = 'Bearer realm="shop", error="invalid_token"'
    assert (wrong.status_code, wrong.headers["www-authenticate"]) == (401, expected)
    assert b"bad" not in wrong.content
    for value in (
        "good",
        "Bearer",
        "Bearer ",
        "Basic good",
        "Bearer " + "x" * 17_000,
        "Bearergood",
    ):
        assert ask(scheme, {"authorization": value}).status_code == 401, value[:20]
    assert ask(scheme, path="/open").text == "open"
    assert ask(scheme, path="/nowhere").status_code == 401
    assert scheme.openapi == {"type": "http", "scheme": "bearer"}


def test_two_authorizations_are_none(serve: Callable[..., Server]) -> None:
    server = serve(
        """
        from citius.web.security import APIKey, Authenticate, Bearer, Principal
        app.middleware(Authenticate(Bearer(lambda token: Principal(token))))
        app.get("/")(lambda: "in")
        """
    )
    field = b"Authorization: Bearer good\r\n"
    for count, status in ((1, 200), (2, 401)):
        with server.connect() as peer:
            peer.send(b"GET / HTTP/1.1\r\nHost: a\r\n" + field * count + b"\r\n")
            assert peer.reply("GET").status == status


@pytest.mark.parametrize("keys", [check, check_later, {"good": ME, "other": Principal("other")}])
def test_api_keys(keys: Any) -> None:
    header = APIKey(keys, field="X-Key")
    assert ask(header, {"x-key": "good"}).text == "me"
    assert ask(header, {"x-key": "bad"}).status_code == 401
    assert "www-authenticate" not in ask(header).headers
    assert header.openapi == {"type": "apiKey", "name": "X-Key", "in": "header"}
    query = APIKey(keys, field="key", place="query")
    assert ask(query, path="/?key=good").text == "me"
    assert ask(query, path="/?key=").status_code == 401
    cookie = APIKey(keys, field="key", place="cookie")
    assert ask(cookie, {"cookie": "key=good"}).text == "me"
    assert ask(cookie, {"cookie": "key"}).status_code == 401


@pytest.mark.parametrize("function", [check_user, check_user_later])
def test_basic(function: Any) -> None:
    scheme = Basic(function, realm="shop")
    assert ask(scheme, {"authorization": basic("ü", "pä:ss")}).text == "ü"
    wrong = ask(scheme, {"authorization": basic("ü", "x")})
    assert wrong.headers["www-authenticate"] == 'Basic realm="shop", charset="UTF-8"'
    for value in (
        "Basic", "Basic !!!", "Basic " + base64.b64encode(b"\xff\xfe:x").decode(),
        "Basic " + base64.b64encode(b"no colon").decode(), basic("a\nb", "pä:ss"),
        basic("a\0", "pä:ss"), "Basic " + "x" * 20_000, "Bearer good",
    ):  # fmt: skip
        assert ask(scheme, {"authorization": value}).status_code == 401, value[:30]


def test_a_realm_cannot_end_its_quotes() -> None:
    for realm in ('a"b', "a\\b", "a\r\nb", "ä"):
        with pytest.raises(ConfigError, match="realm"):
            Basic(check_user, realm=realm)


@pytest.mark.parametrize("function", [check, check_later])
def test_scopes(function: Any) -> None:
    scheme = Bearer(function)
    good = {"authorization": "Bearer good"}
    assert ask(Requires(scheme, "read"), good).text == "me"
    lacking = ask(Requires(Requires(scheme, "read"), "write"), good)
    assert lacking.status_code == 403
    expected = 'Bearer error="insufficient_scope", scope="write"'
    assert lacking.headers["www-authenticate"] == expected
    assert ask(Requires(scheme, "read")).status_code == 401
    assert Requires(Requires(scheme, "a"), "b").scopes == ("a", "b")
    assert Requires(scheme, "a").openapi == scheme.openapi


def test_a_scheme_is_a_callable_of_the_request() -> None:
    app, scheme = App(), Requires(APIKey({"good": ME}), "read")
    app.get("/")(lambda request: scheme(request).id)

    @app.get("/later")
    async def later(request: Request) -> str:
        found: Any = Bearer(check_later)(request)
        return (await found).id

    with Client(app) as client:
        assert client.get("/", headers={"x-api-key": "good"}).text == "me"
        assert client.get("/").status_code == 401
        assert client.get("/later", headers={"authorization": "Bearer good"}).text == "me"


def test_a_route_without_middleware_has_no_principal() -> None:
    app = App()
    app.get("/")(lambda request: principal(request).id)
    with pytest.raises(RuntimeError, match="Authenticate"), Client(app) as client:
        client.get("/")


class CheckOfItsOwn(Scheme):
    def __init__(self) -> None:
        super().__init__("own", {"type": "http", "scheme": "bearer"}, "Bearer")

    def read(self, request: Request) -> str | None:
        return "wrong"

    async def check(self, credentials: str) -> Any:
        return None


async def function(request: Request) -> None:
    return None


@pytest.mark.parametrize(
    "scheme",
    [
        CheckOfItsOwn(),
        Bearer(lambda token: check_later(token)),
        Bearer(lambda token: False),
        function,
    ],
    ids=["coroutine of a subclass", "coroutine of a lambda", "False", "an async function"],
)
def test_only_a_principal_passes(scheme: Any) -> None:
    app = App()
    app.middleware(Authenticate(scheme))
    app.get("/")(lambda: "secret")
    with Client(app, raise_errors=False) as client:
        response = client.get("/", headers={"authorization": "Bearer wrong"})
    assert response.status_code == 500
    assert "secret" not in response.text


@pytest.mark.parametrize("given", [["write"], ("write",), {"write"}, frozenset({"write"})])
def test_scopes_of_any_collection(given: Any) -> None:
    """A list was a 500 of `Requires`, at the first request."""
    scheme = Bearer(lambda token: Principal("me", given))
    needed: Any = Depends(Requires(scheme, "write"))
    app = App()

    @app.get("/")
    def handler(who: Principal = needed) -> str:
        return who.id

    with Client(app) as client:
        assert client.get("/", headers={"authorization": "Bearer t"}).text == "me"


@pytest.mark.parametrize("given", ["write", 1, None])
def test_scopes_that_are_no_set(given: Any) -> None:
    with pytest.raises(TypeError, match="scopes of a Principal are a set of texts"):
        Principal("me", given)


class Compared(APIKey):
    """Its check compares with a variable of the environment that is not set."""

    def check(self, credentials: str) -> Principal | None:
        return Principal("anybody") if credentials == "" else None


@pytest.mark.parametrize(
    ("place", "path", "headers"),
    [
        ("header", "/", {"x-api-key": ""}),
        ("cookie", "/", {"cookie": "x-api-key="}),
        ("query", "/?x-api-key=", {}),
        ("query", "/?x-api-key", {}),
    ],
)
def test_an_empty_key_is_none(place: Any, path: str, headers: dict[str, str]) -> None:
    """It was what a key that is not set compares equal to."""
    scheme = Compared(lambda key: None, place=place)
    app = App()
    app.middleware(Authenticate(scheme))
    app.get("/")(lambda: "secret")
    with Client(app) as client:
        assert client.get(path, headers=headers).status_code == 401


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"": Principal("me")}, "an empty key; is the variable that it is read from set"),
        ({None: Principal("me")}, "a key of the type NoneType"),
        ({b"key": Principal("me")}, "a key of the type bytes"),
        ({"key": "me"}, "'me' for a key; expected a Principal"),
        ({"key": None}, "None for a key; expected a Principal"),
    ],
)
def test_keys_that_are_none(keys: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"APIKey \(.*test_schemes.py:\d+\): keys has {words}"):
        APIKey(keys)


@pytest.mark.parametrize("scope", ["", " ", "read write", " read", None, ["read"]])
def test_scopes_that_nobody_can_have(scope: Any) -> None:
    scheme = Bearer(lambda token: Principal("me"))
    with pytest.raises(ConfigError, match=r"Requires \(.*test_schemes.py:\d+\): expected scopes"):
        Requires(scheme, scope)


@pytest.mark.parametrize(
    ("field", "place"),
    [("", "query"), ("x key", "header"), ("x-key:", "header"), ("a=b", "cookie")],
)
def test_a_field_that_no_request_has_ends_the_start(field: str, place: Any) -> None:
    with pytest.raises(
        ConfigError, match=rf"test_schemes.py:\d+\): expected the name of a {place}"
    ):
        APIKey({"key": Principal("me")}, field=field, place=place)
