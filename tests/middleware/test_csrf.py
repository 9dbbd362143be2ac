"""CSRF protection: what browsers say of a request's origin, tokens, and forgeries of both."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from citius import App, ConfigError, Request
from citius.testing import Client
from citius.web.middleware import CSRF, Sessions, csrf_field, csrf_token

HOST = "shop.example"
OURS = f"http://{HOST}"


def app_of(csrf: CSRF) -> App:
    app = App()
    app.middleware(Sessions("a secret of sixteen bytes"))
    app.middleware(csrf)
    app.get("/")(csrf_token)
    app.get("/field")(csrf_field)
    app.get("/read")(lambda: "read")
    app.post("/")(lambda: "done")
    app.post("/hook")(lambda: "hooked")

    @app.post("/stream", stream=True)
    async def stream(request: Request) -> Any:
        return await request.read()

    return app


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 200),  # a program
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
        ({"sec-fetch-site": "same-origin", "origin": OURS}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "cross-site", "origin": OURS}, 403),
        ({"sec-fetch-site": "cross-site", "origin": "https://partner.example"}, 200),
        ({"sec-fetch-site": "anything"}, 403),
        ({"origin": OURS}, 200),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
        ({"origin": f"https://{HOST}"}, 403),
        ({"origin": f"{OURS}:81"}, 403),
        ({"origin": f"{OURS}.evil.example"}, 403),
        ({"origin": "https://partner.example"}, 200),
        ({"origin": "https://sub.partner.example"}, 403),
        ({"referer": f"{OURS}/form"}, 200),
        ({"referer": f"{OURS}.evil.example/"}, 403),
        ({"referer": "https://evil.example/?http://shop.example/"}, 403),
    ],
)
def test_origins(fields: dict[str, str], status: int) -> None:
    app = app_of(CSRF(trusted_origins=["https://partner.example"], exempt=["/hook"]))
    with Client(app, headers={"host": HOST, **fields}) as client:
        assert client.post("/").status_code == status
        assert client.post("/nowhere").status_code == (404 if status == 200 else status)
        assert client.get("/read").status_code == 200
        assert client.post("/hook").status_code == 200


def test_tokens() -> None:
    with Client(app_of(CSRF(tokens=True))) as client:
        tokens = [client.get("/").text for _ in range(3)]
        assert len(set(tokens)) == 3
        for token in tokens:
            assert client.post("/", form={"csrf_token": token}).text == "done"
            assert client.post("/", headers={"x-csrf-token": token}).text == "done"
            stream = client.post("/stream", headers={"x-csrf-token": token}, content=b"abc")
            assert stream.content == b"abc"
        field = client.get("/field").text
        assert field.startswith('<input type="hidden" name="csrf_token" value="')
        assert client.post("/hook").status_code == 403


def test_forged_tokens() -> None:
    with Client(app_of(CSRF(tokens=True))) as other:
        foreign = other.get("/").text
    with Client(app_of(CSRF(tokens=True))) as client:
        assert client.post("/", form={"csrf_token": foreign}).status_code == 403
        good = client.get("/").text
        raw = base64.urlsafe_b64decode(good + "==")
        forged = [
            "", "x", foreign, good[:-1], good + "AA", good.swapcase(), "ä", "=" * 40, "\0" * 43,
            base64.urlsafe_b64encode(bytes(32)).decode(), base64.b64encode(raw[16:]).decode(),
            base64.urlsafe_b64encode(raw * 2).decode(),
        ]  # fmt: skip
        for token in forged:
            answer = client.post("/", form={"csrf_token": token})
            assert answer.status_code == 403, token
        assert client.post("/", content=b"csrf_token=" + good.encode()).status_code == 403
        broken = {"content-type": "multipart/form-data; boundary=x"}
        assert client.post("/", headers=broken, content=b"--y").status_code == 403
        assert client.post("/stream", form={"csrf_token": good}).status_code == 403
        # A session without its cookie is another session.
        client.cookies.clear()
        assert client.post("/", form={"csrf_token": good}).status_code == 403


@pytest.mark.parametrize("origin", ["chrome-extension://abc", "moz-extension://a-b"])
def test_origins_of_extensions(origin: str) -> None:
    """Frameworks 13."""
    with Client(app_of(CSRF(trusted_origins=[origin]))) as client:
        assert client.post("/", headers={"origin": origin}).status_code == 200
        assert client.post("/", headers={"origin": f"{origin}.evil"}).status_code == 403


def test_a_trusted_origin_has_to_be_one() -> None:
    with pytest.raises(ConfigError, match=r"CSRF \(.*test_csrf\.py:\d+\): expected an origin"):
        CSRF(trusted_origins=["partner.example"])


def without_sessions() -> App:
    return App()


def with_sessions_inside() -> App:
    app = App()
    app.middleware(CSRF(tokens=True))
    app.middleware(Sessions("s" * 32))
    return app


@pytest.mark.parametrize("make", [without_sessions, with_sessions_inside])
def test_tokens_need_sessions_around_them(make: Callable[[], App]) -> None:
    app = make()
    if make is without_sessions:
        app.middleware(CSRF(tokens=True))
    app.post("/")(lambda: "x")
    with pytest.raises(ConfigError, match=r"CSRF of .* needs the session.*before it"), Client(app):
        pass


def test_sessions_that_an_application_gives_in_its_own_way() -> None:
    app = App()

    class Ours(Sessions):
        """Sessions of the application."""

    app.middleware(Ours("s" * 32))
    app.middleware(CSRF(tokens=True))
    app.post("/")(lambda: "x")
    with Client(app) as client:
        assert client.post("/").status_code == 403
