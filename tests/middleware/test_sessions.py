"""Sessions in cookies and in stores: what is kept, what is sent, and what a client cannot do."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from citius import App, ConfigError, Request, Response
from citius.testing import Client
from citius.web.middleware import (
    MemoryStore,
    SessionCookie,
    Sessions,
    SharedStore,
    StoredSessions,
    session,
)

SECRET = "a secret of sixteen bytes"


class AwaitedStore:
    """A store on the loop."""

    def __init__(self) -> None:
        self.inner = MemoryStore()

    async def load(self, key: str) -> bytes | None:
        await asyncio.sleep(0)
        return self.inner.load(key)

    async def save(self, key: str, data: bytes, max_age_s: int) -> None:
        await asyncio.sleep(0)
        self.inner.save(key, data, max_age_s)

    async def replace(self, key: str, data: bytes, max_age_s: int) -> bool:
        await asyncio.sleep(0)
        return self.inner.replace(key, data, max_age_s)

    async def delete(self, key: str) -> bool:
        await asyncio.sleep(0)
        return self.inner.delete(key)


def app_of(middleware: Sessions | StoredSessions) -> App:
    app = App()
    app.middleware(middleware)

    @app.get("/")
    def read(request: Request) -> dict[str, Any]:
        return dict(session(request))

    @app.get("/unused")
    def unused() -> str:
        return "x"

    @app.post("/set/{name}/{value}")
    async def write(request: Request, name: str, value: str) -> dict[str, Any]:
        session(request)[name] = value
        return dict(session(request))

    @app.post("/append")
    def append(request: Request) -> Any:
        session(request).setdefault("list", []).append(1)
        return len(session(request)["list"])

    @app.post("/login", blocking=True)
    def login(request: Request) -> str:
        session(request).rotate()
        session(request)["user"] = "me"
        return "in"

    @app.post("/clear")
    def clear(request: Request) -> str:
        session(request).clear()
        return "out"

    @app.get("/late")
    def late(request: Request) -> Any:
        def pieces() -> Iterator[str]:
            try:
                session(request)["late"] = 1
            except RuntimeError as error:
                yield str(error)

        session(request).get("x")
        return pieces()

    @app.post("/large")
    def large(request: Request) -> str:
        session(request)["x"] = "y" * 4000
        return "large"

    return app


KINDS: dict[str, Callable[[], Sessions | StoredSessions]] = {
    "cookie": lambda: Sessions(SECRET),
    "memory": lambda: StoredSessions(MemoryStore()),
    "awaited": lambda: StoredSessions(AwaitedStore()),
}
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("stored", [b"\x80\x04K\x01.", b"[1]", b"\xff"])
def test_what_is_no_session_is_ended(
    stored: bytes, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """Another program has put it there; its client could do nothing about a 500."""
    store = MemoryStore()
    with Client(app_of(StoredSessions(store))) as client:
        client.post("/set/a/1")
        for _ in range(2):
            (key,) = store._kept
            assert store.replace(key, stored, 60)
            assert client.get("/").json() == {}
            assert not store._kept
            told = caplog.text + capfd.readouterr().err
            assert "is not what this application has stored" in told
            assert client.post("/set/b/2").json() == {"b": "2"}
            assert client.get("/").json() == {"b": "2"}


@kinds
def test_a_session_lasts(kind: str) -> None:
    with Client(app_of(KINDS[kind]())) as client:
        assert "set-cookie" not in client.get("/").headers
        answer = client.post("/set/a/1")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly; SameSite=Lax" in cookie
        assert "Secure" not in cookie  # this is no TLS
        assert answer.headers["cache-control"] == "private"
        answer = client.get("/")
        assert (answer.json(), answer.headers["vary"]) == ({"a": "1"}, "cookie, accept")
        assert "set-cookie" not in answer.headers
        unused = client.get("/unused")
        assert "vary" not in unused.headers
        assert [client.post("/append").json() for _ in range(3)] == [1, 2, 3]
        cleared = client.post("/clear")
        assert "Max-Age=0" in cleared.headers["set-cookie"]
        assert client.get("/").json() == {}


@kinds
def test_a_change_after_the_response_is_refused(kind: str) -> None:
    with Client(app_of(KINDS[kind]())) as client:
        assert "before the handler returns" in client.get("/late").text


@kinds
def test_what_a_client_invents_is_an_empty_session(kind: str) -> None:
    with Client(app_of(KINDS[kind]())) as client:
        client.post("/set/a/1")
        good = client.cookies["session"]
        invented = [
            "", "x", "A" * 43, "../" * 14 + "x", good[:-1], good + "x", good.swapcase(),
            Sessions.__name__, "%00", "eyJhIjoiMSJ9.ffffffff.", "eyJhIjoiMSJ9",
        ]  # fmt: skip
        for value in invented:
            client.cookies["session"] = value
            assert client.get("/").json() == {}, value


def test_a_cookie_of_another_name_or_secret_is_not_taken() -> None:
    with Client(app_of(Sessions(SECRET, SessionCookie(name="other")))) as client:
        client.post("/set/a/1")
        stolen = client.cookies["other"]
    for middleware in (Sessions(SECRET), Sessions("another secret, long enough")):
        with Client(app_of(middleware)) as client:
            client.cookies["session"] = stolen
            assert client.get("/").json() == {}


@pytest.mark.parametrize("kind", ["memory", "awaited"])
def test_identifiers_change_at_a_login_and_are_never_adopted(kind: str) -> None:
    with Client(app_of(KINDS[kind]())) as client:
        client.cookies["session"] = planted = "B" * 43
        client.post("/set/a/1")
        before = client.cookies["session"]
        assert before != planted
        client.post("/login")
        after = client.cookies["session"]
        assert after != before
        assert client.get("/").json() == {"a": "1", "user": "me"}
        client.cookies["session"] = before
        assert client.get("/").json() == {}
        client.cookies["session"] = after
        client.post("/clear")
        client.cookies["session"] = after
        assert client.get("/").json() == {}


def test_a_store_knows_no_identifier() -> None:
    store = MemoryStore()
    with Client(app_of(StoredSessions(store))) as client:
        client.post("/set/a/1")
        assert client.cookies["session"] not in repr(vars(store))


def test_a_memory_store_is_bounded_and_forgets() -> None:
    now = [0.0]
    store = MemoryStore(sessions_max=2, clock=lambda: now[0])
    for key in "abc":
        store.save(key, b"x", 10)
    assert [store.load(key) for key in "abc"] == [None, b"x", b"x"]
    now[0] = 10.0
    assert store.load("b") is None
    assert len(store) == 1


def test_a_session_that_is_too_large_for_a_cookie_says_so() -> None:
    with (
        pytest.raises(ValueError, match="use StoredSessions"),
        Client(app_of(Sessions(SECRET))) as c,
    ):
        c.post("/large")
    with Client(app_of(StoredSessions(MemoryStore()))) as client:
        assert client.post("/large").status_code == 200


def test_rolling_sessions_are_sent_again() -> None:
    with Client(app_of(Sessions(SECRET, SessionCookie(rolling=True)))) as client:
        client.post("/set/a/1")
        assert "set-cookie" in client.get("/").headers
        assert "set-cookie" not in client.get("/unused").headers


def test_an_expired_cookie_is_an_empty_session(monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(app_of(Sessions(SECRET, SessionCookie(max_age_s=60)))) as client:
        client.post("/set/a/1")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 61)
        assert client.get("/").json() == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "a b"}, "a token"),
        ({"name": "__Host-s"}, "secure=True"),
        ({"name": "__Host-s", "secure": True, "domain": "a.example"}, "no domain"),
        ({"name": "__host-s"}, "secure=True"),
        ({"name": "__Secure-s", "secure": False}, "secure=True"),
        ({"same_site": "none", "secure": False}, "secure=True"),
        ({"path": "/; Secure"}, "semicolon"),
        ({"domain": "a\r\nb"}, "SessionCookie"),
        ({"domain": ""}, "a name alone"),
        ({"domain": "a.example:80"}, "a name alone"),
    ],
)
def test_cookies_that_cannot_be_end_the_start(options: dict[str, Any], message: str) -> None:
    """Frameworks 18."""
    with pytest.raises(ConfigError, match=message):
        SessionCookie(**options)


@pytest.mark.parametrize("options", [{"name": "__Secure-s"}, {"same_site": "none"}])
def test_cookies_that_demand_it_are_secure_over_plain_http(options: dict[str, Any]) -> None:
    """Frameworks 18."""
    with Client(app_of(Sessions(SECRET, SessionCookie(**options)))) as client:
        assert "Secure" in client.post("/set/a/1").headers["set-cookie"].split("; ")


def test_without_middleware_there_is_no_session() -> None:
    app = App()
    app.get("/")(lambda request: Response(repr(session(request))))
    with pytest.raises(RuntimeError, match="app.middleware"), Client(app) as client:
        client.get("/")


@pytest.mark.parametrize("is_stored_outside", [False, True])
def test_an_application_and_one_mounted_in_it_have_sessions_of_their_own(
    is_stored_outside: bool,
) -> None:
    cookies = (SessionCookie(name="outer"), SessionCookie(name="inner"))
    kinds: list[Any] = [Sessions(SECRET, cookies[0]), StoredSessions(MemoryStore(), cookies[1])]
    if is_stored_outside:
        kinds = [StoredSessions(MemoryStore(), cookies[0]), Sessions(SECRET, cookies[1])]
    inner = app_of(kinds[1])
    outer = App()
    outer.middleware(kinds[0])
    outer.mount("/in", inner)
    outer.get("/")(lambda request: dict(session(request)))
    with Client(outer) as client:
        client.get("/")
        response = client.post("/in/set/user/me")
        assert [field.partition("=")[0] for field in response.headers.getlist("set-cookie")] == [
            "inner"
        ]
        assert client.get("/in").json() == {"user": "me"}
        assert client.get("/").json() == {}


@pytest.mark.parametrize("kind", [MemoryStore, AwaitedStore])
@pytest.mark.parametrize("rolling", [False, True])
def test_a_session_that_was_deleted_meanwhile_stays_deleted(kind: Any, rolling: bool) -> None:
    store = kind()
    app = app_of(StoredSessions(store, SessionCookie(rolling=rolling)))

    @app.get("/slow")
    def slow(request: Request) -> str:
        if not rolling:
            session(request)["more"] = 1
        assert session(request)["user"] == "me"
        kept = getattr(store, "inner", store)
        for key in list(kept._kept):
            kept.delete(key)
        return "x"

    with Client(app) as client:
        client.post("/set/user/me")
        client.get("/slow")
        assert client.get("/").json() == {}


def end(store: Any, request: Request) -> None:
    """What another request does that ends the session of this one."""
    key = hashlib.sha256(request.cookies["session"].encode()).hexdigest()
    assert getattr(store, "inner", store).delete(key) is True


@pytest.mark.parametrize("make", [MemoryStore, AwaitedStore, SharedStore])
def test_a_rotation_does_not_bring_back_what_another_request_has_ended(make: Any) -> None:
    store = make()
    app = app_of(StoredSessions(store))

    @app.post("/rotate")
    def rotate(request: Request) -> str:
        assert session(request)["user"] == "me"
        end(store, request)
        session(request).rotate()
        return "rotated"

    @app.post("/login-anew")
    def login_anew(request: Request) -> str:
        session(request).clear()
        end(store, request)
        session(request).rotate()
        session(request)["user"] = "you"
        return "in"

    with Client(app) as client:
        client.post("/set/user/me")
        assert "set-cookie" not in client.post("/rotate").headers
        assert client.get("/").json() == {}
        # What was put into an emptied session is none of what was ended.
        client.post("/set/user/me")
        client.post("/login-anew")
        assert client.get("/").json() == {"user": "you"}


@pytest.mark.parametrize("kind", [MemoryStore, AwaitedStore])
def test_a_late_response_does_not_take_the_cookie_of_a_rotated_session_away(kind: Any) -> None:
    store = kind()
    app = app_of(StoredSessions(store, SessionCookie(rolling=True)))

    @app.get("/slow")
    def slow(request: Request) -> str:
        assert session(request)["n"] == "1"
        end(store, request)
        return "x"

    with Client(app) as client:
        client.post("/set/n/1")
        assert "set-cookie" not in client.get("/slow").headers


@kinds
@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("public, max-age=60", "private, max-age=60"),
        ("max-age=60, S-MaxAge=600, immutable", "private, max-age=60, immutable"),
        ("no-cache", "private, no-cache"),
        ('public, no-cache="a, b"', "private"),
        ('private="set-cookie", max-age=60', "private"),
        ("no-store", "no-store"),
        ("max-age=60, Private", "max-age=60, Private"),
    ],
)
def test_a_response_with_the_cookie_is_of_no_shared_cache(kind: str, said: str, sent: str) -> None:
    app = app_of(KINDS[kind]())

    @app.get("/page")
    def page(request: Request) -> Response:
        session(request).setdefault("visits", 1)
        return Response("x", headers={"cache-control": said})

    with Client(app) as client:
        first = client.get("/page")
        assert "set-cookie" in first.headers
        assert first.headers["cache-control"] == sent
        # What sets no cookie may be stored for each of them.
        again = client.get("/page")
        assert "set-cookie" not in again.headers
        assert again.headers["cache-control"] == said
        assert again.headers["vary"] == "cookie"


@kinds
def test_the_session_of_a_failed_request_is_kept(kind: str) -> None:
    """Frameworks, debatable: a log-out or a new identifier holds whatever fails behind it."""
    app = app_of(KINDS[kind]())

    @app.exception_handler(ZeroDivisionError)
    def failed(request: Request, error: ZeroDivisionError) -> Response:
        return Response("failed", status_code=500)

    @app.post("/out-and-fail")
    def out(request: Request) -> float:
        session(request).clear()
        return 1 / 0

    client = Client(app)
    client.post("/login")
    assert client.get("/").json() == {"user": "me"}
    assert client.post("/out-and-fail").status_code == 500
    assert client.get("/").json() == {}


@kinds
@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({1: "a"}, r"its keys are texts \(at session\['x'\]\[1\]\)"),
        (
            [{"a": {"b": {2: 3}}}],
            r"its keys are texts \(at session\['x'\]\[0\]\['a'\]\['b'\]\[2\]\)",
        ),
        ([1, object()], r"object is unsupported \(at session\['x'\]\[1\]\)"),
        ([None, {"rate": float("nan")}], r"become null \(at session\['x'\]\[1\]\['rate'\]: nan\)"),
        (float("-inf"), r"become null \(at session\['x'\]: -inf\)"),
    ],
)
def test_what_json_has_not_is_refused_with_its_place(kind: str, value: Any, place: str) -> None:
    """Frameworks, debatable: keys that are numbers would come back as texts."""
    app = app_of(KINDS[kind]())

    @app.post("/odd")
    def odd(request: Request) -> str:
        session(request)["x"] = value
        return "set"

    with pytest.raises(TypeError, match="the session cannot be kept as JSON: .*" + place):
        Client(app).post("/odd")


@kinds
def test_null_is_json(kind: str) -> None:
    app = app_of(KINDS[kind]())

    @app.post("/null")
    def null(request: Request) -> str:
        session(request)["x"] = [None, 1.5, {"y": None}, "null"]
        return "set"

    with Client(app) as client:
        client.post("/null")
        assert client.get("/").json() == {"x": [None, 1.5, {"y": None}, "null"]}
