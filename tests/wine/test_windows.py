"""A server on Windows, as far as Wine is one: scripts/test-wine. The clients are here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from rig import Server, application, wait_for
from wspeer import RawSocket

pytestmark = pytest.mark.skipif(
    "SERVER_PYTHON" not in os.environ, reason="make test-wine has a Python for Windows"
)

APP = application("windows_app")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "site" / "inner").mkdir(parents=True)
    (tmp_path / "site" / "inner" / "page.txt").write_text("a page")
    (tmp_path / "secret.txt").write_text("a secret")
    (tmp_path / "large.bin").write_bytes(b"y" * 1_000_000)
    return tmp_path


def curl(*arguments: str) -> str:
    done = subprocess.run(
        ["curl", "-sk", "--max-time", "60", *arguments], capture_output=True, check=True, text=True
    )
    return done.stdout


def test_requests(serve, site: Path) -> None:
    server: Server = serve(APP)
    with server.connect() as peer:
        assert peer.request("GET", "/").body == b"win32 ProactorEventLoop"
        assert peer.request("GET", "/thread").body.startswith(b"citius-blocking-")
        assert peer.request("GET", "/large").body == b"x" * 5_000_000
        assert peer.request("GET", "/pieces").body == b"0 1 2 "
        assert peer.request("GET", "/file").body == b"y" * 1_000_000
        assert peer.request("GET", "/none").status == 404


def test_http2_and_tls(serve, site: Path) -> None:
    server: Server = serve(APP, "--ssl-dev")
    url = f"https://127.0.0.1:{server.port}"
    said = curl("--http2", "-w", "%{http_version}", f"{url}/")
    assert said == "win32 ProactorEventLoop2"
    assert curl("--http1.1", "-w", "%{http_version}", f"{url}/thread").endswith("1.1")


def test_a_large_upload_goes_through_a_file(serve, site: Path) -> None:
    server: Server = serve(APP)
    path = site / "large.bin"
    assert curl("-F", f"file=@{path}", f"http://127.0.0.1:{server.port}/upload") == "1000000"


def test_static_files_stay_inside(serve, site: Path) -> None:
    server: Server = serve(APP)
    with server.connect() as peer:
        assert peer.request("GET", "/static/inner/page.txt").body == b"a page"
        for outside in (
            "/static/../secret.txt",
            "/static/%2e%2e/secret.txt",
            "/static/..%5csecret.txt",
            "/static/inner%5cpage.txt",
            "/static/INNER/PAGE.TXT",
            "/static/inner/page.txt.",
            "/static/inner/page.txt::$DATA",
            "/static/NUL",
            "/static/C:/secret.txt",
        ):
            assert peer.request("GET", outside).status in (400, 404), outside


def test_websockets(serve, site: Path) -> None:
    server: Server = serve(APP)
    socket = RawSocket(server, "/ws").accepted()
    socket.text("hello")
    assert socket.message() == "hello"


INTERFACES = {
    "asgi": """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    body = (await receive())["body"]
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body + scope["path"].encode()})
""",
    "wsgi": """
def app(environ, start_response):
    start_response("200 OK", [])
    return [environ["wsgi.input"].read(), environ["PATH_INFO"].encode()]
""",
}


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("threads", [(), ("--threads", "2")], ids=["loop", "threads"])
def test_interfaces(serve, tmp_path: Path, interface: str, threads: tuple[str, ...]) -> None:
    path = tmp_path / "app.py"
    path.write_text(INTERFACES[interface])
    server: Server = serve(path, *threads)
    with server.connect() as peer:
        assert peer.request("POST", "/path", b"body").body == b"body/path"


def test_a_change_is_served(serve, site: Path) -> None:
    # watchfiles would ask WMI for the version of the system, which Wine does not have.
    path = site / "main.py"
    path.write_text(APP.read_text())
    server: Server = serve(path, "--reload", env={"WATCHFILES_FORCE_POLLING": "1"})
    port = server.port
    path.write_text(path.read_text().replace('return f"', 'return f"changed '))

    def has_changed() -> bool:
        done = subprocess.run(
            ["curl", "-s", f"http://127.0.0.1:{port}/"], capture_output=True, text=True
        )
        return done.stdout.startswith("changed ")

    wait_for(has_changed, "the new code", timeout_s=60)
