"""`--sandbox`: an application that has been taken over can do little.

Its handlers try what an intruder would try, and say how it went; without the sandbox all of that succeeds.
"""

from __future__ import annotations

import ctypes
import json
import signal
import socket
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from citius import Config
from citius.errors import ConfigError
from rig import PLAIN, Server, application, children, citius, wait_for

# landlock_create_ruleset has one number on all processors; this flag asks for the version of the interface.
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)

pytestmark = pytest.mark.skipif(LANDLOCK < 6, reason="Linux 6.12 has all that is tested")

# What a handler attempts, and the error that it gets.
ATTEMPTS = {
    "exec": "PermissionError",
    "fork": 42,  # the child's code for a program that was refused
    "ptrace": "PermissionError",
    "unshare": "PermissionError",
    "memory": "PermissionError",
    "kill": "PermissionError",
    "write/etc/citius-was-here": "PermissionError",
    "write/tmp/citius-was-here": "PermissionError",
    "thread/tmp/citius-was-here": "PermissionError",
    "read/root/.profile": "PermissionError",
    "read/etc/hostname": "done",
    "socket/AF_INET": "PermissionError",
    "socket/AF_INET6": "PermissionError",
    "socket/AF_UNIX": "PermissionError",
    "socket/AF_NETLINK": "PermissionError",
    "write/dev/null": "done",
}

Serve = Callable[..., Server]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The working directory; beside it are a file that is none of its business and a place for data."""
    (tmp_path / "srv").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").write_text("of another service")
    (tmp_path / "srv" / "page").write_text("its own")
    return tmp_path / "srv"


@pytest.fixture
def serve(home: Path) -> Generator[Serve]:
    servers: list[Server] = []

    def start(*words: str) -> Server:
        arguments = [str(application("exploited_app")), "--port", "0", "--no-access-log", *words]
        servers.append(Server(arguments, PLAIN, home))
        return servers[-1].wait_ready()

    yield start
    for server in servers:
        server.kill()


def attempt(server: Server, path: str) -> object:
    reply = server.get(f"/{path}")
    assert reply.status == 200, reply
    text = reply.body.decode()
    return json.loads(text) if text.isdigit() else text


@pytest.mark.parametrize("words", [[], ["--loop", "asyncio"], ["--workers", "2"]])
def test_an_intruder_can_do_nothing(serve: Serve, words: list[str]) -> None:
    server = serve("--sandbox", *words)
    assert {path: attempt(server, path) for path in ATTEMPTS} == ATTEMPTS
    assert "sandbox:" not in server.err  # all of it is enforced, and no thread was earlier
    assert server.stop() == 0


def test_without_it_they_succeed(serve: Serve, home: Path) -> None:
    server = serve()
    for path in ("exec", "socket/AF_INET", "read/etc/hostname", f"write{home}/new"):
        assert attempt(server, path) == "done", path


def test_paths_that_are_named(serve: Serve, home: Path) -> None:
    data, secret = home.parent / "data", home.parent / "secret"
    server = serve("--sandbox", "--sandbox-write", str(data))
    assert attempt(server, f"write{data}/a") == "done"
    assert attempt(server, f"thread{data}/b") == "done"
    assert attempt(server, f"read{home}/page") == "done"
    assert attempt(server, f"write{home}/page") == "PermissionError"
    assert attempt(server, f"read{secret}") == "PermissionError"
    second = serve("--sandbox", "--sandbox-read", str(secret))
    assert attempt(second, f"read{secret}") == "done"
    assert attempt(second, f"write{secret}") == "PermissionError"


def test_ports_that_are_named(serve: Serve) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as told,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        port = told.getsockname()[1]
        server = serve("--sandbox", "--sandbox-connect", str(port))
        assert attempt(server, f"connect/{port}") == "done"
        assert attempt(server, f"connect/{other.getsockname()[1]}") == "PermissionError"
        assert attempt(server, "socket/AF_UNIX") == "PermissionError"
        assert attempt(server, "exec") == "PermissionError"
    second = serve("--sandbox", "--sandbox-connect", "unix")
    assert attempt(second, "socket/AF_UNIX") == "done"
    assert attempt(second, "socket/AF_INET") == "PermissionError"


def test_reload_upgrade_and_log_files_go_on(serve: Serve, home: Path) -> None:
    """What the supervisor does for workers it still does, and a worker opens its log again."""
    log = home.parent / "data" / "access.log"
    server = serve("--sandbox", "--access-log-file", str(log), "--access-log")
    (before,) = children(server)
    server.signal(signal.SIGHUP)
    wait_for(lambda: len(children(server)) == 1 and children(server) != [before], "a new worker")
    assert attempt(server, "exec") == "PermissionError"
    log.rename(log.with_suffix(".1"))
    server.signal(signal.SIGUSR1)
    wait_for(
        lambda: attempt(server, "exec") and log.exists() and log.read_text(), "a line in a new file"
    )


def test_threads_of_wsgi(serve: Serve, home: Path) -> None:
    """They are started after the sandbox has been entered, so that it holds for them."""
    (home / "on_wsgi.py").write_text(
        "def app(environ, start):\n"
        "    start('200 OK', [])\n"
        "    try:\n"
        "        open('/tmp/citius-was-here', 'w')\n"
        "    except OSError as error:\n"
        "        return [type(error).__name__.encode()]\n"
        "    return [b'done']\n"
    )
    server = Server(["on_wsgi:app", "--port", "0", "--sandbox", "--threads", "2"], PLAIN, home)
    try:
        assert server.wait_ready().get("/").body == b"PermissionError"
        assert "sandbox:" not in server.err
    finally:
        server.kill()


def test_threads_that_were_earlier(home: Path) -> None:
    """The notice says that paths are open to them."""
    (home / "early.py").write_text(
        "import threading\n"
        "from citius import App\n"
        "app = App()\n"
        "threading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    server = Server(["early:app", "--port", "0", "--sandbox"], PLAIN, home)
    try:
        server.wait_ready().wait_for_log("sandbox: 1 thread")
    finally:
        server.kill()


def test_contradictions(tmp_path: Path) -> None:
    for wrong in (
        {"sandbox_write": ("/tmp",)},
        {"sandbox": True, "supervisor": False},
        {"sandbox": True, "reload": True},
        {"sandbox": True, "sandbox_connect": ("localhost:5432",)},
        {"sandbox": True, "sandbox_connect": ("65536",)},
    ):
        with pytest.raises(ConfigError):
            Config(**wrong)
    done = citius(
        "serve", str(application("exploited_app")), "--port", "0", "--sandbox", "--sandbox-read", "/no/such",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3
    assert "sandbox_read: there is no /no/such" in done.stderr
