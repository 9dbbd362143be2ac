"""The crate `citius-handler` over TLS: a private authority, another name, another authority, no TLS."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from goroutines_rig import post
from rig import Server

HERE = Path(__file__).parent

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def outgoing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    folder = tmp_path_factory.mktemp("outgoing")
    manifest = HERE / "outgoing_rust/Cargo.toml"
    built = subprocess.run(
        ["cargo", "build", "--offline", "--locked", "--quiet", "--manifest-path", manifest],
        capture_output=True, text=True, env={**os.environ, "CARGO_TARGET_DIR": str(folder)},
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (folder / "main.py").write_text(
        "from citius import App, load_handlers\n"
        "app = App()\n"
        f"handlers = load_handlers({str(folder / 'debug/liboutgoing.so')!r})\n"
        "for name in ('fetch', 'converse'):\n"
        "    app.post('/' + name, compiled=handlers[name], serial=True)\n"
        "    app.post('/pool/' + name, compiled=handlers[name], serial=True, pool=True)\n"
    )
    server = Server(["main.py", "--port", "0"], {}, folder).wait_ready()
    yield server
    server.kill()


@pytest.fixture(params=["", "/pool"], ids=["reactor", "pool"])
def where(request: pytest.FixtureRequest) -> str:
    return request.param


def fetch(server: Server, where: str, secure: tuple[int, str], **query: object) -> str:
    host = query.pop("host", "localhost")
    given = {"url": f"https://{host}:{secure[0]}/", "authorities": secure[1], **query}
    return post(server, where + "/fetch", b"content", **given)


def test_a_certificate_of_a_private_authority(
    outgoing: Server, secure: tuple[int, str], where: str
) -> None:
    for _ in range(2):  # the second by the same connection
        assert fetch(outgoing, where, secure) == "201 content"


def test_a_certificate_of_another_name_is_refused(
    outgoing: Server, secure: tuple[int, str], where: str
) -> None:
    told = fetch(outgoing, where, secure, host="127.0.0.1")
    assert told.startswith("502 Tls ")
    assert "name" in told
    assert fetch(outgoing, where, secure, server_name="elsewhere.test").startswith("502 Tls ")
    # The name that was asked for is the one that counts.
    assert (
        fetch(outgoing, where, secure, host="127.0.0.1", server_name="localhost") == "201 content"
    )


def test_an_authority_that_is_not_trusted_is_refused(
    outgoing: Server, secure: tuple[int, str], where: str, tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    told = fetch(outgoing, where, secure, authorities=other)
    assert told.startswith("502 Tls ")
    # The same with the system's authorities, which do not know it either.
    url = f"https://localhost:{secure[0]}/"
    assert post(outgoing, where + "/fetch", url=url).startswith("502 Tls ")
    told = fetch(outgoing, where, secure, authorities=tmp_path / "none.pem")
    assert told.startswith("502 Tls ")
    assert "none.pem" in told


def test_nothing_is_verified_where_that_is_asked_for(
    outgoing: Server, secure: tuple[int, str], where: str
) -> None:
    url = f"https://127.0.0.1:{secure[0]}/"
    assert post(outgoing, where + "/fetch", b"x", url=url, unverified=1) == "201 x"


def test_a_connection_over_tls(outgoing: Server, secure: tuple[int, str], where: str) -> None:
    port, authorities = secure
    asked = b"POST / HTTP/1.0\r\nhost: x\r\ncontent-length: 70000\r\n\r\n" + b"y" * 70_000
    told = post(
        outgoing, where + "/converse", asked, host="localhost", port=port, authorities=authorities
    )
    assert told.startswith("HTTP/1.1 201")
    assert told.endswith("\r\n\r\n" + "y" * 70_000)
    told = post(
        outgoing, where + "/converse", asked, host="127.0.0.1", port=port, authorities=authorities
    )
    assert told.startswith("502 Tls ")


def test_a_server_without_tls_is_a_tls_error(
    outgoing: Server, secure: tuple[int, str], where: str
) -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"hello")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        url = f"https://localhost:{listener.getsockname()[1]}/"
        assert fetch(outgoing, where, secure, url=url).startswith("502 Tls ")
        thread.join()
