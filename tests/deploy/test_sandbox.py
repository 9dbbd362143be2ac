"""`--sandbox`: an application that has been taken over can do little.

Its handlers try what an intruder would try, and say how it went; without the sandbox all of that succeeds.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest
from citius import Config
from citius.errors import ConfigError
from citius.process import sandbox
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
    # hostile 1d: what is not opened is not changed or watched either
    "chmod/etc/hostname": "PermissionError",
    "utime/etc/hostname": "PermissionError",
    "xattr/etc/hostname": "PermissionError",
    "inotify/etc": "PermissionError",
    "priority": "PermissionError",
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


@pytest.mark.parametrize("kind", ["link", "directory", "fifo"])
def test_no_log_file_is_opened_by_a_link_of_a_worker(serve: Serve, home: Path, kind: str) -> None:
    """The supervisor is not confined; new workers would inherit what it has opened (hostile 1)."""
    log = home.parent / "data" / "logs" / "access.log"
    log.parent.mkdir()
    options = ["--sandbox", "--sandbox-write", str(home.parent / "data"), "--workers", "2"]
    server = serve(*options, "--access-log", "--access-log-file", str(log))
    where = log.parent if kind == "directory" else log
    source = f"os.rename('{where}', '{where}.1'); "
    source += f"os.mkfifo('{log}')" if kind == "fifo" else f"os.symlink('{home}/page', '{log}')"
    if kind == "directory":
        (home / "access.log").write_text("its own")
        source = f"os.rename('{where}', '{where}.1'); os.symlink('{home}', '{where}')"
    with server.connect() as peer:
        assert peer.request("POST", "/run/1", source.encode()).body == b"done"
    if kind == "fifo":
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    server.signal(signal.SIGUSR1)
    server.wait_for_log("cannot write to .*access.log: .*workers.* (write|change)")
    before = set(children(server))
    server.signal(signal.SIGHUP)
    wait_for(lambda: len(now := set(children(server))) == 2 and not now & before, "new workers")
    server.get("/exec")
    server.stop()
    assert (home / "page").read_text() == "its own"
    if kind == "directory":
        assert (home / "access.log").read_text() == "its own"
    if kind == "fifo":
        os.close(reader)
    # A later start is refused too.
    arguments = [str(application("exploited_app")), "--port", "0", *options]
    again = Server([*arguments, "--access-log-file", str(log)], PLAIN, home)
    assert again.process.wait(30) == 3
    again.kill()


@pytest.mark.parametrize(
    "words",
    [
        ["--access-log-file", "access.log"],
        ["--log-file", "{home}/server.log"],
        ["--sandbox-write", "{home}"],
        ["--sandbox-write", "/"],
    ],
    ids=" ".join,
)
def test_no_worker_writes_what_later_ones_run(home: Path, words: list[str]) -> None:
    """They run it before they are confined: it would be a way out, and a log file opens its directory."""
    (home / "served.py").write_text("from citius import App\n\napp = App()\n")
    named = [word.format(home=home) for word in words]
    done = citius("serve", "served:app", "--port", "0", "--sandbox", *named, cwd=home)
    assert done.returncode == 3
    said = done.stderr + "".join(path.read_text() for path in home.glob("server.log"))
    assert "workers may write" in said
    assert ("log files" if "log" in words[0] else "sandbox_write") in said


def test_no_link_of_a_worker_opens_more_for_the_next_one(serve: Serve, home: Path) -> None:
    """The rules of the kernel are about what a path leads to when a worker enters the sandbox."""
    data, outside = home.parent / "data", home.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of another service")
    for name in ("public", "spool"):
        (data / name).mkdir()
    server = serve(
        "--sandbox", "--sandbox-write", str(data), "--sandbox-write", str(data / "spool"),
        "--static", f"/public={data}/public", "--workers", "2",
    )  # fmt: skip
    assert "link" not in server.err
    source = "".join(
        f"os.rename('{data}/{name}', '{data}/{name}.1'); os.symlink('{outside}', '{data}/{name}');"
        for name in ("public", "spool")
    )
    with server.connect() as peer:
        assert peer.request("POST", "/run/1", source.encode()).body == b"done"
    before = set(children(server))
    server.signal(signal.SIGHUP)
    wait_for(lambda: len(now := set(children(server))) == 2 and not now & before, "new workers")
    server.wait_for_log("public is not opened: it is reached by a link", 2)
    server.wait_for_log("spool is not opened: it is reached by a link", 2)
    for path in (outside, data / "public", data / "spool"):
        assert attempt(server, f"read{path}/secret") == "PermissionError"
        assert attempt(server, f"write{path}/secret") == "PermissionError"
    assert attempt(server, f"write{data}/a") == "done"
    assert server.get("/public/secret").status in (403, 404)


# Whatever it shares with the supervisor and is no socket of the server's is emptied, filled, and waits again.
FILLS = """
import stat
for name in os.listdir("/proc/self/fd"):
    with suppress(OSError):
        fd = int(name)
        kind = os.fstat(fd).st_mode
        is_pair = stat.S_ISSOCK(kind) and socket.socket(fileno=os.dup(fd)).family == socket.AF_UNIX
        if stat.S_ISFIFO(kind) or is_pair:
            os.set_blocking(fd, False)
            for do in (lambda: os.read(fd, 65536), lambda: os.write(fd, bytes(4096))):
                with suppress(OSError):
                    for _ in range(5000):
                        if do() == b"":
                            break
            os.set_blocking(fd, True)
os._exit(1)
"""


def test_the_supervisor_waits_for_nothing_that_a_worker_shares(serve: Serve) -> None:
    """It would replace no worker any more, and end for no signal but SIGKILL."""
    server = serve("--sandbox", "--workers", "2")
    before = set(children(server))
    with server.connect() as peer:
        peer.send(b"POST /run/1 HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(FILLS))
        peer.send(FILLS.encode())
        wait_for(lambda: not before <= set(children(server)), "the end of the worker")
    wait_for(lambda: len(children(server)) == 2, "a new worker")
    before = set(children(server))
    server.signal(signal.SIGHUP)
    wait_for(lambda: len(now := set(children(server))) == 2 and not now & before, "new workers")
    assert attempt(server, "exec") == "PermissionError"
    assert server.stop() == 0


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


@pytest.mark.parametrize("words", [[], ["--access-log"], ["--loop", "asyncio"]])
def test_threads_that_were_earlier(serve: Serve, home: Path, words: list[str]) -> None:
    """They are confined as those that are started later (hostile 1a), also with all signals blocked."""
    if words == ["--access-log"]:
        words = ["--access-log", "--access-log-file", str(home.parent / "data" / "access.log")]
    server = serve("--sandbox", *words)
    assert attempt(server, f"early{home.parent / 'secret'}") == "PermissionError"
    assert attempt(server, f"early{home / 'page'}") == "done"
    assert "sandbox:" not in server.err


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)", "add --sandbox-connect udp"),
        ("socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "add --sandbox-connect unix"),
        ("socket.socketpair(type=socket.SOCK_DGRAM)", "add --sandbox-connect unix"),
        # It can be connected later, where a port is named and `connect` is allowed.
        ("socket.socket(socket.AF_UNIX)", "add --sandbox-connect unix"),
        ("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)", "close it"),
    ],
)
def test_sockets_of_the_start_that_reach_any_address(home: Path, source: str, text: str) -> None:
    (home / "open.py").write_text(
        f"import socket\nfrom citius import App\napp = App()\nkept = {source}\n"
    )
    server = Server(["open:app", "--port", "0", "--sandbox"], PLAIN, home)
    try:
        assert server.process.wait(30) == 3
        assert text in server.err
        assert "can send to any address" in server.err
    finally:
        server.kill()


def test_sockets_of_the_start_that_reach_one_place(home: Path) -> None:
    (home / "open.py").write_text(
        "import socket\nfrom citius import App\napp = App()\npair = socket.socketpair()\n"
        "listens = socket.socket(socket.AF_UNIX)\nlistens.bind('listens'), listens.listen()\n"
        "@app.get('/')\ndef index(): return 'served'\n"
    )
    server = Server(["open:app", "--port", "0", "--sandbox"], PLAIN, home)
    try:
        assert server.wait_ready().get("/").body == b"served"
    finally:
        server.kill()


def test_processes_of_the_start_are_named(home: Path) -> None:
    (home / "child.py").write_text(
        "import subprocess, sys\nfrom citius import App\napp = App()\n"
        # With the server's own it would keep its output open, and this test waiting.
        "nowhere = subprocess.DEVNULL\n"
        "child = subprocess.Popen(['sleep', '60'], stdout=nowhere, stderr=nowhere)\n"
    )
    server = Server(["child:app", "--port", "0", "--sandbox"], PLAIN, home)

    def named() -> list[int]:
        return [int(pid) for pid in re.findall(r"not confined: (\d+)", server.err)]

    try:
        server.wait_ready().wait_for_log(r"not confined: \d+ \(sleep\)")
        # They are no business of the supervisor, which ends those that are confined.
        server.signal(signal.SIGHUP)
        server.wait_for_log(r"not confined: \d+ \(sleep\)", 2)
        server.wait_for_log("all workers are new")
        assert server.stop() == 0
        assert [Path(f"/proc/{pid}/comm").read_text() for pid in named()] == ["sleep\n"] * 2
    finally:
        server.kill()
        for pid in named():
            os.kill(pid, signal.SIGKILL)


WAYS = {
    # hostile 1b: sockets that the worker has, disconnected and connected elsewhere
    "accepted": "s = one(False); disconnect(s); s.sendto(b'x', 0x20000000, to)",
    "accepted, connected": "s = one(False); disconnect(s); s.connect(to)",
    "sendmsg": "one(False).sendmsg([b'x'], [], 0x20000000, to)",
    # hostile 1c: beside the port that is allowed
    "connect": "socket.socket().connect(to)",
    "connect by IPv6": "socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', to[1]))",
    "fastopen": "socket.socket().sendto(b'x', 0x20000000, to)",
    "fastopen later": "s = socket.socket(); s.setsockopt(6, 30, 1); s.connect(to); s.send(b'x')",
    "mptcp": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).connect(to)",
    "udp": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', to)",
    "listen": "socket.socket().listen()",
    # AF_UNSPEC disconnects, and never connects, whatever address and port follow
    "unspecified": "s = socket.socket(); disconnect(s, to); s.getpeername()",
    "unspecified, bound": "s = socket.socket(); check(libc.bind(s.fileno(), unspecified(to), 16))",
    "named before": "s = socket.socket(); s.connect(named); disconnect(s, to); s.connect(to)",
    "of the other family": (
        "s = socket.socket(socket.AF_INET6); s.connect(('::ffff:127.0.0.1', named[1]))\n"
        "s.setsockopt(socket.IPPROTO_IPV6, 1, socket.AF_INET); disconnect(s, to)\n"
        "check(libc.connect(s.fileno(), struct.pack('=H', 2) + unspecified(to)[2:], 16))"
    ),
    "unix pair": "s, t = socket.socketpair(); t.close(); s.connect('other')",
    # The last one, for where a port is named it ends the listening.
    "listener": (
        "s = one(True); disconnect(s)\n"
        "with suppress(OSError): s.sendto(b'x', 0x20000000, to)\n"
        "s.connect(to)"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "words", [[], ["NAMED"], ["--workers", "2"], ["NAMED", "udp", "unix"], ["udp"]]
)
def test_no_way_to_another_address(serve: Serve, home: Path, words: list[str]) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        socket.socket(socket.AF_UNIX) as unix,
        socket.create_server(("127.0.0.1", 0)) as named,
    ):
        unix.bind(os.fspath(home / "other"))
        unix.listen()
        for one in (other, unix):
            one.setblocking(False)
        port, allowed = other.getsockname()[1], named.getsockname()[1]
        options = list(words)
        if words and words[0] in ("NAMED", "udp"):
            kinds = [str(allowed) if word == "NAMED" else word for word in words]
            options = [part for kind in kinds for part in ("--sandbox-connect", kind)]
        server = serve("--sandbox", *options)
        for name, source in WAYS.items():
            if name == "udp" and "udp" in words:
                continue
            with server.connect() as peer, suppress(ConnectionError, EOFError):
                # Where `connect` is allowed, a worker can disconnect its own clients by it.
                body = f"named = ('127.0.0.1', {allowed})\n{source}".encode()
                reply = peer.request("POST", f"/run/{port}", body)
                assert reply.body in (b"PermissionError", b"OSError"), (name, reply, server.err)
            with pytest.raises(BlockingIOError):
                other.accept()


@pytest.mark.parametrize("source", ["disconnect(one(True))", "one(True).shutdown(socket.SHUT_RD)"])
def test_a_worker_that_has_ended_its_listening_is_replaced(serve: Serve, source: str) -> None:
    """No mechanism of the kernel keeps an intruder from it; a reload mends it."""
    server = serve("--sandbox", "--sandbox-connect", "5432")
    (before,) = children(server)
    with server.connect() as peer:
        assert peer.request("POST", "/run/1", source.encode()).body == b"done"
    with pytest.raises(ConnectionRefusedError):
        server.connect()
    server.signal(signal.SIGHUP)
    wait_for(lambda: children(server) not in ([before], []), "a new worker")
    wait_for(lambda: before not in children(server), "the end of the old one")
    assert server.get("/exec").status == 200


def test_the_others_go_on_when_one_has_ended_its_listening(serve: Serve) -> None:
    server = serve("--sandbox", "--workers", "2")
    with server.connect() as peer:
        body = b"one(True).shutdown(socket.SHUT_RD)"
        assert peer.request("POST", "/run/1", body).body == b"done"
    assert {server.get("/exec").status for _ in range(20)} == {200}


LINGER = "(socket.SOL_SOCKET, socket.SO_LINGER"


@pytest.mark.parametrize("words", [[], ["--workers", "2"]])
def test_options_of_the_sockets_do_not_outlive_a_worker(serve: Serve, words: list[str]) -> None:
    """Connections that later workers accept would have them: with this one each response could be lost."""
    server = serve("--sandbox", *words)
    before = children(server)
    with server.connect() as peer:
        body = f"one(True).setsockopt{LINGER}, struct.pack('ii', 1, 0))"
        assert peer.request("POST", "/run/1", body.encode()).body == b"done"
    for worker in before:
        os.kill(worker, signal.SIGKILL)
    wait_for(lambda: len(children(server)) == len(before), "new workers")
    wait_for(lambda: not set(before) & set(children(server)), "the end of the old ones")
    for _ in range(10):
        with server.connect() as peer:
            body = f"check(-any(one(True).getsockopt{LINGER}, 8)))"
            assert peer.request("POST", "/run/1", body.encode()).body == b"done"


FORKS = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        Path("data/new").write_text(str(os.getpid()))
        Path("data/new").rename("data/pid")
        signal.pause()
    os._exit(0)
"""


@pytest.mark.parametrize("way", ["reload", "stop", "kill"])
def test_what_a_worker_has_forked_ends_with_it(serve: Serve, home: Path, way: str) -> None:
    """It would live on with the sockets of the server."""
    (home / "data").mkdir()
    server = serve("--sandbox", "--sandbox-write", str(home / "data"))
    (before,) = children(server)
    with server.connect() as peer:
        assert peer.request("POST", "/run/1", FORKS.encode()).body == b"done"
    wait_for((home / "data/pid").exists, "the process")
    pid = int((home / "data/pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    if way == "stop":
        assert server.stop() == 0
        assert not Path(f"/proc/{pid}").exists()
        return
    if way == "reload":
        server.signal(signal.SIGHUP)
    else:
        os.kill(before, signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{before}").exists(), "the end of the worker")
    wait_for(lambda: not Path(f"/proc/{pid}").exists(), "the end of its process")
    assert server.get("/exec").status == 200
    assert server.stop() == 0


# Files, and low ports.
KEPT = sum(1 << number for number in (0, 1, 2, 3, 4, 10))


@pytest.mark.skipif(os.geteuid() != 0, reason="root has capabilities")
def test_root_keeps_what_it_needs_for_files(serve: Serve) -> None:
    server = serve("--sandbox", "--access-log")
    (worker,) = children(server)
    states = [path.read_text() for path in Path(f"/proc/{worker}/task").glob("*/status")]
    assert len(states) > 1
    for state in states:
        fields = dict(line.split(":\t", 1) for line in state.splitlines() if ":\t" in line)
        assert int(fields["CapPrm"], 16) & ~KEPT == 0, state
        assert int(fields["CapEff"], 16) & ~KEPT == 0, state
        assert int(fields["CapInh"], 16) == 0, state
    # With CAP_SYS_ADMIN the memory that workers share with the supervisor could be truncated.
    source = (
        "ranges = [line.split()[0] for line in open('/proc/self/maps') if '/dev/zero' in line]\n"
        "(first, last) = ranges[0].split('-')\n"
        "os.open(f'/proc/self/map_files/{int(first, 16):x}-{int(last, 16):x}', os.O_RDWR)"
    )
    with server.connect() as peer:
        assert peer.request("POST", "/run/1", source.encode()).body == b"PermissionError"


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


def test_the_guide_names_what_can_be_read() -> None:
    """hostile 1: it says exactly what is left; four of seventeen places were in it."""
    guide = (Path(__file__).parents[2] / "docs/guides/deployment.md").read_text()
    (row,) = [one for one in guide.splitlines() if one.startswith("| read a file")]
    assert not [one for one in sandbox._SYSTEM if f"`{one}`" not in row]  # pyright: ignore[reportPrivateUsage]
