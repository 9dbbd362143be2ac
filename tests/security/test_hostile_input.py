"""Bad input as docs/guides/security.md lists it: what has no test of its own elsewhere.

Multipart forms: tests/unit/test_forms.py, tests/server/test_uploads.py. Sessions:
tests/middleware/test_sessions.py. Tokens: tests/security/test_jwt.py, test_signing.py. Origins:
tests/middleware/test_cors.py. Files: tests/server/test_file_responses.py, tests/static/test_confinement.py.
Templates: tests/server/test_templates.py.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from citius import App, File, Request, Response, UploadFile
from citius.testing import Client

app = App()


@app.get("/cookies")
def cookies(request: Request) -> dict[str, str]:
    return dict(request.cookies)


@app.get("/set")
def set_cookie(name: str, value: str, path: str = "/", domain: str | None = None) -> Response:
    response = Response("set")
    response.headers.set_cookie(name, value, path=path, domain=domain)
    return response


@app.post("/keep")
async def keep(request: Request, file: Annotated[UploadFile, File()]) -> str:
    target: Path = app.state.directory / (file.filename or "unnamed")
    target.write_bytes(await file.read())
    return target.name


@pytest.fixture
def client() -> Any:
    with Client(app, raise_errors=False) as made:
        yield made


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ("a=1; a=2", {"a": "1"}),
        ("a; =x; ; b=2", {"b": "2"}),
        ("a=1,b=2", {"a": "1,b=2"}),
        ('a="q;b=2', {"a": '"q', "b": "2"}),
        ("a=1;" * 2000, {"a": "1"}),
        (";" * 7000, {}),
        ("=" * 7000, {}),
        ("a=" + "=" * 5000, {"a": "=" * 5000}),
        ("a=%00%0D%0A", {"a": "%00%0D%0A"}),
        ("__proto__=1; constructor=2", {"__proto__": "1", "constructor": "2"}),
    ],
)
def test_cookies_that_clients_invent(client: Client, sent: str, seen: dict[str, str]) -> None:
    response = client.get("/cookies", headers={"cookie": sent})
    assert response.status_code == 200
    assert response.json() == seen


@pytest.mark.parametrize("sent", ["a=\0", "a=\x01", "a=\x7f", "a=1\rb=2"])
def test_cookies_with_control_characters(client: Client, sent: str) -> None:
    assert client.get("/cookies", headers={"cookie": sent}).status_code == 400


def test_cookies_beyond_the_limit_of_the_header_section(client: Client) -> None:
    begun = time.monotonic()
    assert client.get("/cookies", headers={"cookie": "a=1;" * 20_000}).status_code == 431
    assert client.get("/cookies", headers={"cookie": "a=" + "x" * 100_000}).status_code == 431
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    "params",
    [
        {"name": "a", "value": "1\r\nset-cookie: b=2"},
        {"name": "a", "value": "1; Domain=example.org"},
        {"name": "a;b", "value": "1"},
        {"name": "a\r\nx", "value": "1"},
        {"name": "", "value": "1"},
        {"name": "a", "value": "1", "path": "/; HttpOnly"},
        {"name": "a", "value": "1", "domain": "a.example\r\nx: y"},
    ],
)
def test_cookies_that_would_forge_attributes(client: Client, params: dict[str, str]) -> None:
    response = client.get("/set", params=params)
    assert response.status_code == 500
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "filename", ["../outside", "..\\outside", "/tmp/outside", "a/../../outside", "..", "out\0side"]
)
def test_names_of_uploads_stay_in_their_directory(
    client: Client, filename: str, tmp_path: Path
) -> None:
    """Even in an application that does what the guide advises against."""
    app.state.directory = tmp_path / "uploads"
    app.state.directory.mkdir()
    response = client.post("/keep", files={"file": (filename, b"x")})
    assert response.status_code == 200
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [response.text]
    assert list(tmp_path.iterdir()) == [app.state.directory]
