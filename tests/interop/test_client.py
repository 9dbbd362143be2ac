"""The test client: files, cookies, redirects, authentication, schemes."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from citius import App, Cookie, Form, Header, Request, Response, redirect
from citius.testing import Client, Cookies, TooManyRedirects

app = App()


@app.post("/upload")
def upload(request: Request) -> Any:
    data = request.form()
    files = {name: data.files[name] for name in data.files}
    shown = {n: [f.filename, f.content_type, f.file.read().decode()] for n, f in files.items()}
    return {"fields": dict(data), "files": shown}


@app.get("/to/show")
@app.get("/show")
def show(request: Request) -> Any:
    return {
        "cookies": dict(request.cookies),
        "scheme": request.scheme,
        "host": request.host,
        "authorization": request.header("authorization"),
        "x": request.headers.getlist("x"),
        "path": request.path,
    }


@app.get("/shop/cart")
def cart(request: Request) -> Any:
    return dict(request.cookies)


@app.get("/shop/set")
def set_cookies() -> Response:
    response = Response("set")
    response.headers.set_cookie("everywhere", "1")
    response.headers.set_cookie("shop", "2", path="/shop")
    response.headers.set_cookie("domain", "3", domain="testserver")
    response.headers.set_cookie("tls", "4", secure=True)
    response.headers.set_cookie("other", "5", domain="example.org")
    response.headers.set_cookie("default", "6", path=None)
    return response


@app.get("/shop/forget")
def forget() -> Response:
    response = Response("forgotten")
    response.headers.delete_cookie("everywhere")
    response.headers.add("set-cookie", "shop=; Path=/shop; Expires=Thu, 01 Jan 1970 00:00:00 GMT")
    return response


@app.route("/to/{status:int}", methods=["GET", "POST"])
def to(status: int, where: str = "/method") -> Response:
    return Response(b"", status, {"location": where})


@app.route("/method", methods=["GET", "POST"])
def method(request: Request) -> Any:
    return [request.method, request.body().decode()]


@app.get("/loop")
def loop() -> Response:
    return redirect("/loop")


def test_files() -> None:
    with Client(app) as client:
        response = client.post(
            "/upload", form={"title": "ä"},
            files={"a": b"1", "b": ("b.txt", "2"), "c": ('"c".bin', b"3", "image/png")},
        )  # fmt: skip
        assert response.json() == {
            "fields": {"title": "ä"},
            "files": {
                "a": ["a", "application/octet-stream", "1"],
                "b": ["b.txt", "text/plain", "2"],
                "c": ['"c".bin', "image/png", "3"],
            },
        }
        with pytest.raises(TypeError, match="one body"):
            client.post("/upload", json=1, files={"a": b""})


def test_cookies_have_paths_and_domains() -> None:
    with Client(app) as client:
        client.get("/shop/set")
        assert client.get("/show").json()["cookies"] == {"everywhere": "1", "domain": "3"}
        everything = {"everywhere": "1", "shop": "2", "domain": "3", "default": "6"}
        assert client.get("/shop/cart").json() == everything
        below = {"host": "a.testserver:81"}
        assert client.get("/show", headers=below).json()["cookies"] == {"domain": "3"}
        assert client.get("/show", headers={"host": "other"}).json()["cookies"] == {}
        client.get("/shop/forget")
        assert client.get("/shop/cart").json() == {"domain": "3", "default": "6"}
        client.cookies["mine"] = "x"
        assert client.get("/show", headers={"host": "other"}).json()["cookies"] == {"mine": "x"}
        del client.cookies["mine"]
        assert sorted(client.cookies) == ["default", "domain", "tls"]
        client.cookies["domain"] = "given"
        assert client.get("/shop/cart").json() == {"domain": "given", "default": "6"}
        client.get("/shop/set")
        assert client.get("/shop/cart").json()["domain"] == "3"
        assert client.get("/show", headers={"cookie": "own=1"}).json()["cookies"] == {"own": "1"}


def test_secure_cookies_need_the_scheme() -> None:
    with Client(app, scheme="https") as client:
        client.get("/shop/set")
        shown = client.get("/show").json()
        assert (shown["scheme"], shown["cookies"]["tls"]) == ("https", "4")


def test_a_path_is_no_prefix_of_a_longer_name() -> None:
    cookies = Cookies()
    cookies.receive("a=1; Path=/shop", "testserver", "/")
    assert cookies.header("testserver", "/shop/x", False) == "a=1"
    assert cookies.header("testserver", "/shopping", False) == ""


@pytest.mark.parametrize(
    ("status", "seen"),
    [
        (301, ["GET", ""]),
        (302, ["GET", ""]),
        (303, ["GET", ""]),
        (307, ["POST", "a"]),
        (308, ["POST", "a"]),
    ],
)
def test_redirects(status: int, seen: list[str]) -> None:
    with Client(app, follow_redirects=True) as client:
        response = client.post(f"/to/{status}", content="a")
        assert response.json() == seen
        assert [one.status_code for one in response.history] == [status]
        assert client.get(f"/to/{status}", follow_redirects=False).status_code == status
        with pytest.raises(TooManyRedirects):
            client.get("/loop")
    with Client(app) as client:
        assert client.get(f"/to/{status}").status_code == status


def test_a_redirect_to_another_host_tells_it_nothing() -> None:
    with Client(app, follow_redirects=True) as client:
        shown = client.get(
            "/to/302", params={"where": "https://other.example/show"}, auth=("ada", "secret")
        ).json()
        assert (shown["host"], shown["authorization"]) == ("other.example", None)
        shown = client.get("/to/302", params={"where": "show"}, auth=("ada", "x")).json()
        assert (shown["path"], shown["authorization"]) == ("/to/show", "Basic YWRhOng=")


def test_authentication_and_fields() -> None:
    with Client(app, headers={"x": "0"}) as client:
        shown = client.get("/show", auth=("ada", "secret"), headers=[("X", "1"), ("x", "2")]).json()
        assert shown["authorization"] == "Basic YWRhOnNlY3JldA=="
        assert shown["x"] == ["1", "2"]
        assert client.get("/show").json()["x"] == ["0"]


def test_sources_of_parameters_meet_the_client() -> None:
    inner = App()

    @inner.post("/")
    def take(
        a: Annotated[str, Form()], b: Annotated[str, Cookie()], c: Annotated[int, Header()]
    ) -> Any:
        return [a, b, c]

    with Client(inner) as client:
        client.cookies["b"] = "2"
        assert client.post("/", form={"a": "1"}, headers={"c": "3"}).json() == ["1", "2", 3]


def test_texts_that_are_not_latin1_are_sent_as_utf8() -> None:
    """The client raised UnicodeEncodeError for paths and values of fields beyond latin-1."""
    app = App()

    @app.get("/{name}")
    def echo(request: Request, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "field": request.header("x-name", ""),
            "theme": request.cookies["theme"],
        }

    with Client(app) as client:
        got = client.get("/日本", headers={"x-name": "漢字", "cookie": "theme=夜"})
        # Handlers read fields as latin-1.
        field, theme = (text.encode().decode("latin-1") for text in ("漢字", "夜"))
        assert got.json() == {"name": "日本", "field": field, "theme": theme}
        assert client.get("/\ud800", headers={"cookie": "theme=x"}).status_code in (200, 400, 404)
