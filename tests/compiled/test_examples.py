"""The examples in native code are built as their READMEs say, and answer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pg_rig
import pytest
import redis_rig
from rig import Server, application

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[str], Path]:
    """The example in a place of its own, where it may be built."""

    def make(name: str) -> Path:
        return Path(shutil.copytree(ROOT / "examples" / name, tmp_path / name))

    return make


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def start(directory: Path) -> Server:
        made = Server(["app.py", "--port", "0"], {}, directory).wait_ready()
        servers.append(made)
        return made

    yield start
    for server in servers:
        server.kill()


def run(command: list[str], directory: Path, **env: str) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_c(copy: Callable[[str], Path], serve: Callable[[Path], Server]) -> None:
    if shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("no make or no C compiler here")
    directory = copy("compiled-c")
    run(["make", f"PYTHON={sys.executable}"], directory)
    server = serve(directory)
    assert server.get("/hello/w%C3%B6rld").body == "Hello, wörld!\n".encode()
    assert server.get("/primes?below=1000").body == b"168"
    assert server.get("/primes?below=none").status == 422
    answer = server.get("/primes?below=10000000")
    assert (answer.status, answer.body) == (400, b"at most 1000000\n")
    with server.connect() as peer:
        answer = peer.request("POST", "/reverse", b"drawer" * 10_000)
    assert (answer.status, answer.body) == (201, b"reward" * 10_000)
    assert answer.headers["x-reversed"] == "yes"


def test_cython(copy: Callable[[str], Path], serve: Callable[[Path], Server]) -> None:
    pytest.importorskip("Cython", reason="Cython is not installed")
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    directory = copy("compiled-cython")
    run([sys.executable, "setup.py", "build_ext", "--inplace"], directory)
    server = serve(directory)
    with server.connect() as peer:
        answer = peer.request("POST", "/count", b"abc 123!")
    assert (answer.status, answer.body) == (200, b'{"digits":3,"letters":3,"others":2}')
    assert server.get("/square/-12").body == b"144"
    assert server.get("/square/99999999999").status == 422


def test_rust(copy: Callable[[str], Path], serve: Callable[[Path], Server]) -> None:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here")
    directory = copy("compiled-rust")
    manifest = directory / "Cargo.toml"
    crate = (ROOT / "crates/citius-handler").as_posix()
    manifest.write_text(manifest.read_text().replace("../../crates/citius-handler", crate))
    run(
        ["cargo", "build", "--release", "--offline", "--quiet"],
        directory,
        CARGO_TARGET_DIR="target",
    )
    server = serve(directory)
    with server.connect() as peer:
        assert peer.request("POST", "/add/40").body == b"40"
        assert peer.request("POST", "/add/2").body == b"42"
        assert peer.request("POST", "/add/two").status == 422
    answer = server.get("/agent", user_agent="works")
    assert (answer.body, answer.headers["vary"]) == (b"5 characters\n", "user-agent")
    assert server.get("/agent").status == 404
    assert server.get("/panic").status == 500
    server.wait_for_log("GET /panic: the compiled handler mishap: it returned -2")
    with server.connect() as peer:
        assert peer.request("POST", "/add/0").body == b"42"
    for prefix in ("", "/pool"):
        assert server.get(f"{prefix}/squares?count=100").body == b"328350"
        assert server.get(f"{prefix}/words").body == b"fast slow 2"
        assert server.get(f"{prefix}/unsent").body == b"the time is over; 1 left"
        assert server.get(f"{prefix}/child").body == b"lives"
        answer = server.get(f"{prefix}/relay?port={server.port}")
        assert (answer.status, answer.body) == (200, b"5 characters\n")
        assert answer.headers["x-vary"] == "user-agent"
        assert server.get(f"{prefix}/line?port={server.port}").body == b"HTTP/1.1 404 Not Found"
        assert server.get(f"{prefix}/line?port=1").body == b"refused"
    call_databases(directory / "target/release/libhandlers.so")


def call_databases(library: Path) -> None:
    """The same library in an application with Redis and PostgreSQL, where they are installed."""
    binaries = pg_rig.find_binaries()
    if redis_rig.SERVER is None or binaries is None:
        return
    redis, database = redis_rig.Server(), pg_rig.Server(binaries)
    try:
        redis.start()
        database.start()
        variables = {"REDIS": redis.url, "DSN": database.dsn, "LIBRARY": str(library)}
        target = str(application("compiled_rust_databases_app"))
        server = Server([target, "--port", "0"], variables, library.parent).wait_ready()
        try:
            with server.connect() as peer:
                assert peer.request("POST", "/visits/home").body == b"1"
                assert peer.request("POST", "/visits/home").body == b"2"
            for prefix in ("", "/pool"):
                assert server.get(f"{prefix}/sum?of=100").body == b"5050"
                assert server.get(f"{prefix}/sum?of=0").status == 404
        finally:
            server.kill()
    finally:
        redis.remove()
        database.remove()
