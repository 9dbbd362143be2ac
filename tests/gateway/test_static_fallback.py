"""The page of a single-page application, which requests for HTML get where there is no file and no route."""

from __future__ import annotations

from pathlib import Path

import pytest
from citius import App, ConfigError, NotFound
from citius.testing import Client
from citius.web.middleware import SecurityHeaders
from citius.web.security import APIKey, Authenticate, Principal

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("the page")
    (site / "data.txt").write_text("data")
    return site


def api() -> App:
    inner = App()
    inner.get("/known")(lambda: "known")
    return inner


@pytest.mark.parametrize("prefix", ["", "/shop"])
@pytest.mark.parametrize("with_middleware", [False, True])
def test_pages_get_the_fallback(site: Path, prefix: str, with_middleware: bool) -> None:
    app = App()
    if with_middleware:
        app.middleware(SecurityHeaders())
    app.static(
        prefix or "/", site, fallback="index.html", cache_control="no-cache",
        middleware=bool(prefix) or not with_middleware,
    )  # fmt: skip

    @app.get(f"{prefix}/api/missing")
    def missing() -> None:
        raise NotFound

    app.post(f"{prefix}/api/posted")(lambda: "posted")
    app.mount(f"{prefix}/other", api())
    with Client(app) as client:
        for path in ("/orders/7", "/orders/7/", "/data.txt/x", "/.hidden", "/..%2fx", "/"):
            answer = client.get(prefix + path, headers=BROWSER)
            assert (answer.status_code, answer.text) == (200, "the page"), path
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache"
            assert ("x-content-type-options" in answer.headers) is (
                with_middleware and (bool(prefix) or path != "/")
            )
        answer = client.get(f"{prefix}/orders", headers=BROWSER)
        assert answer.headers["vary"] == "accept"
        etag = {"if-none-match": answer.headers["etag"]}
        assert client.get(f"{prefix}/orders", headers=BROWSER | etag).status_code == 304
        head = client.head(f"{prefix}/orders", headers=BROWSER)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "8")

        assert client.get(f"{prefix}/data.txt", headers=BROWSER).text == "data"
        assert client.get(f"{prefix}/other/known", headers=BROWSER).text == "known"
        for path in ("/api/missing", "/other/nope"):
            if path == "/other/nope" and prefix:
                continue  # the mount has all paths below its prefix
            assert client.get(prefix + path, headers=BROWSER).status_code == 404, path
        for accept in (
            "*/*",
            "application/json",
            "text/html;q=0, */*",
            "text/html; q=0.000",
            "image/png",
        ):
            answer = client.get(f"{prefix}/orders", headers={"accept": accept})
            assert answer.status_code == 404, accept
        assert client.post(f"{prefix}/orders", headers=BROWSER).status_code in (404, 405)
        if not prefix:
            assert client.get("/api/posted", headers=BROWSER).status_code == 405
            assert client.post("/orders", headers=BROWSER).status_code == 404


def test_authentication_holds_for_the_fallback(site: Path) -> None:
    inner = App()
    inner.middleware(Authenticate(APIKey({"good": Principal("me")})))
    inner.static("/", site, fallback="index.html")
    app = App()
    app.mount("/admin", inner)
    with Client(app, headers=BROWSER) as client:
        assert client.get("/admin/orders").status_code == 401
        assert client.get("/admin/orders", headers={"x-api-key": "good"}).text == "the page"
        assert client.get("/elsewhere").status_code == 404


def test_the_fallback_of_a_mounted_application_is_for_its_paths(site: Path) -> None:
    inner = App()
    inner.static("/", site, fallback="index.html")
    app = App()
    app.mount("/shop", inner)
    with Client(app, headers=BROWSER) as client:
        assert client.get("/shop/orders").text == "the page"
        assert client.get("/orders").status_code == 404


@pytest.mark.parametrize("name", ["", "/index.html", "../index.html", ".hidden", "a//b", "a/../b"])
def test_names_that_are_refused(site: Path, name: str) -> None:
    with pytest.raises(
        ConfigError, match=r"test_static_fallback\.py:\d+.*fallback is a file below"
    ):
        App().static("/", site, fallback=name)


def test_what_cannot_work_is_refused(site: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="drop middleware=False"):
        App().static("/shop", site, fallback="index.html", middleware=False)
    for prefix in ("/", "/shop"):
        app = App()
        app.static(prefix, site, fallback="missing.html")
        with pytest.raises(ConfigError, match=r"missing\.html' is no file in"):
            Client(app)
        app = App()
        app.static(prefix, tmp_path / "none", fallback="index.html", optional=True)
        app.get("/known")(lambda: "known")
        with Client(app, headers=BROWSER) as client:
            assert client.get("/shop/orders").status_code == 404
