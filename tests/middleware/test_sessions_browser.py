"""Chromium keeps sessions of both kinds: from page to page, for WebSockets, not for pages of other sites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import Browser
from rig import Server, application

APP = application("sessions_browser_app")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    started = Browser(tmp_path / "browser")
    yield started
    started.close()


def live(url: str) -> str:
    """A script: the first message of a WebSocket, or why there is none."""
    return (
        f"new Promise((resolve) => {{ const socket = new WebSocket({url!r});"
        "socket.onmessage = ({data}) => resolve(data); socket.onerror = () => resolve('refused'); })"
    )


@pytest.mark.parametrize("kind", ["signed", "stored"])
def test_a_session_follows_a_browser(
    kind: str, browser: Browser, serve: Callable[..., Server]
) -> None:
    server = serve(APP)
    url = f"http://localhost:{server.port}"
    socket = f"ws://localhost:{server.port}/{kind}/live"
    for visits in ("1", "2", "3"):
        browser.open(f"{url}/{kind}")
        assert browser.text == visits
    # Scripts cannot read the cookie, a WebSocket of the page comes with it.
    assert browser.run("document.cookie") == ""
    assert browser.run(live(socket)) == "3"

    page = serve("app.get('/')(lambda: Response('<p>evil</p>', content_type='text/html'))")
    # Another site, and another origin of the same site, which cookies are sent to.
    for host in ("127.0.0.1", "localhost"):
        browser.open(f"http://{host}:{page.port}/")
        assert browser.run(live(socket)) == "refused"

    browser.open(f"{url}/{kind}/end")
    browser.open(f"{url}/{kind}")
    assert browser.text == "1"
