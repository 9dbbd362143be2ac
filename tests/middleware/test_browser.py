"""Chromium judges: pages of two origins, with CORS and Content-Security-Policy between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from rig import Server, application

APP = application("browser_policies_app")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    started = Browser(tmp_path / "browser")
    yield started
    started.close()


def script(url: str, options: str = "{}") -> str:
    return (
        f"fetch({url!r}, {options}).then(async (a) => [a.status, await a.text(),"
        " a.headers.get('x-total'), a.headers.get('x-hidden')], (e) => e.name)"
    )


def test_cors_and_csp(browser: Browser, serve: Callable[..., Server]) -> None:
    page = serve("app.get('/')(lambda: Response('page', content_type='text/html'))")
    here = f"http://localhost:{page.port}"
    shop = serve(APP, env={"ALLOWED": here})
    url = f"http://localhost:{shop.port}"
    browser.open(url + "/cookie")

    browser.open(here + "/")
    assert browser.run(script(url + "/data")) == [200, "secret", "nobody", None]
    credentials = "{credentials: 'include'}"
    assert browser.run(script(url + "/data", credentials)) == [200, "secret", "me", None]
    assert browser.run(script(url + "/fails"))[0] == 500
    assert browser.run(script(url + "/nowhere"))[0] == 404
    put = "{method: 'PUT', headers: {'x-key': 'k'}}"
    assert browser.run(script(url + "/data", put))[:2] == [200, "put k"]
    other = "{method: 'PUT', headers: {'x-other': 'k'}}"
    assert browser.run(script(url + "/data", other)) == "TypeError"
    assert browser.run(script(url + "/data", "{method: 'DELETE'}")) == "TypeError"

    # The same page under another origin.
    browser.open(f"http://127.0.0.1:{page.port}/")
    assert browser.run(script(url + "/data")) == "TypeError"
    # In a sandbox, the origin is "null".
    framed = (
        "new Promise((resolve) => { addEventListener('message', ({data}) => resolve(data));"
        "const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts';"
        f"frame.srcdoc = `<script>fetch('{url}/data').then(() => 'read', (e) => e.name)"
        ".then((word) => parent.postMessage(word, '*'))</` + `script>`;"
        "document.body.append(frame); })"
    )
    assert browser.run(framed) == "TypeError"

    browser.open(url + "/pages")
    assert browser.run("[window.ours, window.injected]") == [1, None]
