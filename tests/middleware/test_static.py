"""Static mounts with middleware around them: it sees files, redirects and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from citius import App, ConfigError, NotFound, Response
from citius.testing import Client
from citius.web.middleware import SecurityHeaders
from citius.web.security import APIKey, Authenticate, Principal


@pytest.fixture
def site(tmp_path: Path) -> Path:
    site = tmp_path / "site"
    (site / "below").mkdir(parents=True)
    (site / "index.html").write_text("index")
    (site / "below/index.html").write_text("below")
    (site / "data.txt").write_text("0123456789")
    (site / ".hidden").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (site / "link.txt").symlink_to(tmp_path / "outside.txt")
    return site


@pytest.fixture
def client(site: Path) -> Iterator[Client]:
    inner = App()
    inner.static("/assets", site, cache_control="no-cache")
    inner.exception_handler(NotFound)(lambda request, error: Response("our own 404", 404))
    app = App()
    app.middleware(SecurityHeaders())
    app.middleware(Authenticate(APIKey({"good": Principal("me")})))
    app.static("/open", site, middleware=False)
    app.mount("/inner", inner)
    app.get("/inner/assets/made")(lambda: "made")
    with Client(app, headers={"x-api-key": "good"}) as client:
        yield client


def test_files_pass_middleware(client: Client) -> None:
    for path, text in (("data.txt", "0123456789"), ("", "index"), ("below/", "below")):
        answer = client.get(f"/inner/assets/{path}")
        assert (answer.status_code, answer.text) == (200, text)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-cache"
        refused = client.get(f"/inner/assets/{path}", headers={"x-api-key": "bad"})
        assert refused.status_code == 401
    head = client.head("/inner/assets/data.txt")
    assert (head.content, head.headers["content-length"]) == (b"", "10")
    assert client.get("/inner/assets/made").text == "made"
    open_one = client.get("/open/data.txt", headers={"x-api-key": "bad"})
    assert (open_one.text, "x-content-type-options" in open_one.headers) == ("0123456789", False)


def test_conditions_and_ranges(client: Client) -> None:
    path = "/inner/assets/data.txt"
    etag = client.get(path).headers["etag"]
    again = client.get(path, headers={"if-none-match": etag})
    assert (again.status_code, again.headers["x-frame-options"]) == (304, "DENY")
    assert client.get(path, headers={"range": "bytes=2-4"}).content == b"234"


def test_directories_are_redirected(client: Client) -> None:
    for path in ("/inner/assets", "/inner/assets/below"):
        answer = client.get(path + "?a=b")
        assert (answer.status_code, answer.headers["location"]) == (301, path + "/?a=b")


@pytest.mark.parametrize(
    "path",
    [
        "missing", ".hidden", "link.txt", "../outside.txt", "%2e%2e/outside.txt", "..%2foutside.txt",
        "%2fetc/passwd", "/etc/passwd", "below//index.html", "data.txt/", "data.txt%00",
    ],
)  # fmt: skip
def test_what_is_not_served(client: Client, path: str) -> None:
    answer = client.get(f"/inner/assets/{path}")
    assert (answer.status_code, answer.text) == (404, "our own 404")
    assert client.post("/inner/assets/data.txt").status_code == 405


def test_a_missing_directory(tmp_path: Path) -> None:
    for optional in (True, False):
        app = App()
        app.middleware(SecurityHeaders())
        app.static("/assets", tmp_path / "missing", optional=optional)
        app.get("/")(lambda request: "x")
        if optional:
            with Client(app) as client:
                assert client.get("/assets/x").status_code == 404
        else:
            with pytest.raises(ConfigError, match="no directory"):
                Client(app)


def test_without_middleware_nothing_changes(site: Path) -> None:
    """All below the prefix is the extension's; a route there would never be called."""
    app = App()
    app.static("/assets", site)
    with Client(app) as client:
        assert client.get("/assets/data.txt").text == "0123456789"
    app = App()
    app.static("/assets", site)
    app.get("/assets/data.txt")(lambda request: "the route")
    with pytest.raises(ConfigError, match="/assets/data.txt .* never come there"):
        Client(app)


def test_files_of_a_mounted_application_pass_its_middleware(site: Path) -> None:
    inner = App()
    inner.static("/", site)
    inner.middleware(Authenticate(APIKey({"good": Principal("me")})))
    app = App()
    app.mount("/admin", inner)
    with Client(app) as client:
        assert client.get("/admin/data.txt").status_code == 401
        assert client.get("/admin/data.txt", headers={"x-api-key": "good"}).text == "0123456789"
