"""The library of handlers that wait, built once a session, and servers with them."""

from __future__ import annotations

import http.server
import importlib.util
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import citius
import pytest
import trustme
from rig import Server

HERE = Path(__file__).parent


def _compiled_conftest() -> Any:
    """The builder of tests/compiled, which is no package."""
    path = HERE.parent / "compiled/conftest.py"
    spec = importlib.util.spec_from_file_location("compiled_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("compiled_conftest", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def build_c() -> Callable[..., Path]:
    return _compiled_conftest().build


@pytest.fixture(scope="session")
def library_path(build_c: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("c") / "goroutines.so"
    # The recursions are meant.
    return build_c(HERE / "goroutines.c", library, "-Wno-infinite-recursion")


@pytest.fixture(scope="session")
def library(library_path: Path) -> citius.compiled.Handlers:
    return citius.load_handlers(library_path)


@pytest.fixture
def serve_library(library_path: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serves handlers of the library, each below its name, and `/alive`."""
    servers: list[Server] = []

    def start(*options: str, pool: bool = False, more: str = "", **environment: str) -> Server:
        (tmp_path / "main.py").write_text(
            "from citius import App, load_handlers\n"
            "from citius.go import chan, go, share\n"
            "app = App()\n"
            f"handlers = load_handlers({str(library_path)!r})\n"
            "@app.get('/alive')\n"
            "def alive(): return 'yes'\n"
            "def add(name, path=None, method=app.get, **how):\n"
            f"    method(path or '/' + name, compiled=handlers[name], serial=True, pool={pool}, **how)\n"
            f"{more}\n"
        )
        made = Server(["main.py", "--port", "0", *options], environment, tmp_path).wait_ready()
        servers.append(made)
        return made

    yield start
    for server in servers:
        server.kill()


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """A server over TLS for the name localhost: its port, and the file of its authority."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    authorities = str(folder / "ca.pem")
    authority.cert_pem.write_to_path(authorities)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(201)
            self.send_header("content-type", "text/x")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def finish(self) -> None:
            super().finish()
            # The end is announced; a client that is gone is not told.
            with suppress(OSError):
                self.connection.unwrap()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port, authorities
    server.shutdown()
    # The connections have ended with the server under test: their threads are waited for.
    server.server_close()
