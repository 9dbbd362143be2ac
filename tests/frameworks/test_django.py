"""Django's admin and a form in a browser: login, CSRF, cookies, static files, uploads; sqlite behind them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import HOST, Client
from browser import Browser
from servers import Pair, Running, citius, gunicorn, uvicorn

WAYS = {
    "wsgi": (("wsgi", ()), "shop.wsgi:application"),
    "threads": (("wsgi", ("--threads", "4")), "shop.wsgi:application"),
    "gevent": (("wsgi", ("--loop", "gevent")), "shop.wsgi:application"),
    "asgi": (("asgi", ()), "shop.asgi:application"),
}


@pytest.fixture(params=WAYS)
def shops(request: pytest.FixtureRequest, django_database, folder: Path) -> Iterator[Pair]:
    """The project with Citius and its reference, each with a database of its own."""
    (interface, options), target = WAYS[request.param]
    env = {"SHOP_DEBUG": "1"}
    started: list[Running] = []
    try:
        for name in ("ours", "theirs"):
            database = f"{name}.sqlite3"
            shutil.copy(folder / "shop.sqlite3", folder / database)
            given = {**env, "SHOP_DATABASE": database}
            if name == "ours":
                started.append(citius(target, folder, *options, **given))
            else:
                start = uvicorn if interface == "asgi" else gunicorn
                started.append(start(target, folder, **given))
        yield Pair(*started)
    finally:
        for server in started:
            server.kill()


@pytest.mark.timeout(120)
def test_the_admin_in_a_browser(shops: Pair, tmp_path: Path, folder: Path) -> None:
    """What is read, which cookies there are, and what was fetched, page by page."""

    def visit(server: Running) -> list[object]:
        browser = Browser(tmp_path / server.name)
        seen: list[object] = []

        def look() -> None:
            title = browser.run("document.title")
            seen.append((title, browser.text.replace(server.url, ""), browser.cookies))
            seen.append(sorted(set(browser.loaded)))

        try:
            browser.open(f"{server.url}/admin/")
            look()
            browser.fill("username", "admin")
            browser.fill("password", "wrong")
            browser.press("[type=submit]")
            look()
            browser.fill("password", "secret")
            browser.press("[type=submit]")
            look()
            # The style sheets have arrived and mean something.
            seen.append(browser.run("getComputedStyle(document.querySelector('#header')).display"))
            browser.open(f"{server.url}/admin/wares/ware/add/")
            look()
            browser.fill("name", "Teapot ü")
            browser.fill("price", "12.50")
            browser.choose_file("picture", folder / "course.bin")
            browser.press("[name=_save]")
            look()
            browser.open(f"{server.url}/wares/")
            look()
            browser.fill("name", "Cup")
            # Without a price the browser itself objects; the server shall.
            browser.run("document.querySelector('form').noValidate = true")
            browser.press("#add")
            look()
            browser.open(f"{server.url}/admin/wares/ware/?q=Tea")
            look()
            browser.press("#logout-form button")
            look()
        finally:
            browser.close()
        return seen

    seen = shops.same(visit)
    text = "\n".join(map(str, seen))
    assert "Please enter the correct username and password" in text
    assert "The ware “Teapot ü” was added successfully" in text
    assert "Teapot ü: 12.50 256000" in text
    assert "('/static/admin/css/base.css', 200)" in text
    assert "('sessionid', True)" in text
    assert "This field is required." in text


def test_forged_forms_are_refused(shops: Pair) -> None:
    def forge(server: Running) -> list[int]:
        with Client(server) as client:
            first = client.ask("POST", "/wares/", data={"name": "Cup", "price": "1"}).status
            client.ask("GET", "/wares/")
            token = client.cookies["csrftoken"]
            data = {"name": "Cup", "price": "1", "csrfmiddlewaretoken": token}
            files = {"picture": ("p.png", b"x" * 3_000_000, "image/png")}
            second = client.ask("POST", "/wares/", data=data, files=files).status
            listed = client.ask("GET", "/wares/")
            assert b"Cup: 1.00 3000000" in listed.body
            return [first, second]

    assert shops.same(forge) == [403, 302]


def test_sessions_are_kept_in_the_database(shops: Pair) -> None:
    def count(server: Running) -> list[int]:
        with Client(server) as client:
            return [json.loads(client.ask("GET", "/count").body) for _ in range(3)]

    assert shops.same(count) == [1, 2, 3]


def test_error_pages_for_developers(shops: Pair) -> None:
    def page(server: Running) -> tuple[int, bool, bool]:
        with Client(server) as client:
            answer = client.ask("GET", "/fail", headers={"accept": "text/html"})
            missing = client.ask("GET", "/missing", headers={"accept": "text/html"})
            return (
                answer.status,
                b"Mistake at /fail" in answer.body,
                b"Using the URLconf defined in" in missing.body,
            )

    assert shops.same(page) == (500, True, True)


def test_collected_static_files_are_served_in_front(django_database, folder: Path) -> None:
    mount = f"/static={folder / 'static'}"
    server = citius("shop.wsgi:application", folder, "--static", mount)
    try:
        with Client(server) as client:
            style = client.ask("GET", "/static/admin/css/base.css")
            assert (style.status, style["content-type"]) == (200, "text/css; charset=utf-8")
            assert style.body == (folder / "static/admin/css/base.css").read_bytes()
            again = {"if-none-match": style["etag"]}
            assert client.ask("GET", "/static/admin/css/base.css", headers=again).status == 304
            assert client.ask("GET", "/static/../shop.sqlite3").status == 404
            assert client.ask("GET", "/admin/login/").status == 200
            assert client.ask("GET", "/hello", headers={"host": HOST}).status == 200
    finally:
        server.kill()
