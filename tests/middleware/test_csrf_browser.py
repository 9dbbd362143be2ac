"""Chromium sends forms and fetches from our own pages and from another site's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from rig import Server, application

APP = application("csrf_browser_app")

OTHER = """
@app.get("/")
def page():
    return Response(f"<form method=post action={os.environ['TARGET']}/pay>"
                    "<input name=sum value=999><button></button></form>", content_type="text/html")
"""


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    started = Browser(tmp_path / "browser")
    yield started
    started.close()


def test_forms_of_two_sites(browser: Browser, serve: Callable[..., Server]) -> None:
    shop = serve(APP)
    target = f"http://localhost:{shop.port}"
    browser.open(target + "/")
    browser.fill("sum", "7")
    browser.press("button")
    assert browser.text == "me paid 7"

    evil = serve(OTHER, env={"TARGET": target})
    # Another site, and another origin of the same site, to which cookies go too.
    for host in ("127.0.0.1", "localhost"):
        browser.open(f"http://{host}:{evil.port}/")
        browser.press("button")
        assert "another site" in browser.text
        assert "paid" not in browser.text
