"""The system calls of a confined worker, each made from every kind of thread (hostile 1 a to d).

The right result of a call that is allowed is the one that it has in a process that is not confined.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from applications.syscall_bodies import how_a_call_of_32_bits_ends, make_calls
from rig import PLAIN, Peer, Server, application, children, wait_for
from syscalls import (
    ABSENT,
    BAD,
    BEYOND,
    METADATA,
    NOT_IN_PLACE,
    NOT_TRIED,
    NUMBERS,
    REFUSED,
    arguments,
)  # fmt: skip

LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)

pytestmark = [
    pytest.mark.skipif(LANDLOCK < 6, reason="Linux 6.12 has all that is tested"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64"),
]
TABLE = [[NUMBERS[name], arguments(name)] for name in NUMBERS if name not in NOT_TRIED]
NAMES = [name for name in NUMBERS if name not in NOT_TRIED]
KINDS = ["loop", "blocking", "early", "hook", "later", "executor", "default"]
AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK, AF_SMC = 2, 10, 16, 17, 40, 43
STREAM, DGRAM, RAW = 1, 2, 3
MPTCP, SCTP, UDPLITE = 262, 132, 136
FASTOPEN = 0x2000_0000

Serve = Callable[..., Server]


@pytest.fixture
def serve(tmp_path: Path) -> Generator[Serve]:
    servers: list[Server] = []

    def start(*words: str) -> Server:
        target = [str(application("syscalls_app")), "--port", "0", "--no-access-log"]
        servers.append(Server([*target, "--sandbox", *words], PLAIN, tmp_path))
        return servers[-1].wait_ready()

    yield start
    for server in servers:
        server.kill()


def ask(server: Server, path: str, calls: object) -> Any:
    with server.connect() as peer:
        return ask_by(peer, path, calls)


def ask_by(peer: Peer, path: str, calls: object) -> Any:
    fields = {"content-type": "application/json"}
    reply = peer.request("POST", f"/{path}", json.dumps(calls).encode(), **fields)
    assert reply.status == 200, reply.body
    return json.loads(reply.body)


def named(calls: list[tuple[str, tuple[int, ...]]]) -> list[object]:
    return [[NUMBERS[name], arguments] for name, arguments in calls]


def right(name: str, free: int) -> int:
    """The error number that a call has to end with, if it has this one where nothing is confined."""
    if name in REFUSED:
        return errno.EPERM
    return errno.ENOSYS if name in ABSENT else free


def test_the_table_is_whole() -> None:
    assert set(NUMBERS) >= REFUSED | ABSENT | NOT_TRIED
    assert not REFUSED & ABSENT
    assert METADATA <= REFUSED
    assert {*range(335), *range(424, 471)} == set(NUMBERS.values())


@pytest.fixture(scope="module")
def expected() -> dict[str, int]:
    """The right result of each call, from one that is made here, where nothing is confined."""
    free: list[int] = make_calls(TABLE)
    assert len(free) == len(TABLE)
    return {name: right(name, got) for name, got in zip(NAMES, free, strict=True)}


def differences(found: list[int], expected: dict[str, int]) -> dict[str, tuple[int, int]]:
    pairs = zip(NAMES, found, strict=True)
    return {name: (got, expected[name]) for name, got in pairs if got != expected[name]}


def test_every_call_from_every_kind_of_thread(serve: Serve, expected: dict[str, int]) -> None:
    server = serve()
    for kind in KINDS:
        assert differences(ask(server, kind, TABLE), expected) == {}, kind
        beyond = ask(server, kind, [[number, (0,) * 6] for number in BEYOND])
        assert set(beyond) == {errno.ENOSYS}, kind


def test_every_call_from_every_reactor(serve: Serve, expected: dict[str, int]) -> None:
    server = serve("--workers", "2", "--reactor-threads", "2")
    with ExitStack() as stack:
        found: dict[bytes, Peer] = {}

        def one_more() -> bool:
            peer = stack.enter_context(server.connect())
            found.setdefault(peer.request("GET", "/thread").body, peer)
            return len(found) == 4

        wait_for(one_more, "a connection to each reactor of each worker")
        for thread, peer in found.items():
            for kind in ("loop", "blocking", "default"):
                assert differences(ask_by(peer, kind, TABLE), expected) == {}, (thread, kind)


def test_calls_of_32_bits_end_the_process(serve: Serve) -> None:
    """They have numbers of their own: one that is harmless in the table is another call there."""
    if how_a_call_of_32_bits_ends() != 0:
        pytest.skip("the kernel has no calls of 32 bits")
    server = serve()
    assert int(server.get("/compat").body) == -signal.SIGSYS


def test_every_call_from_processes_of_executors(tmp_path: Path, expected: dict[str, int]) -> None:
    """They are confined from their beginning, and replaced; so is the one that forks them."""
    target = [str(application("recovery_app")), "--port", "0", "--no-access-log", "--sandbox"]
    (data := tmp_path / "data").mkdir()
    server = Server([*target, "--sandbox-write", str(data)], PLAIN, tmp_path)
    try:
        server.wait_ready()
        for _ in range(2):
            assert differences(ask(server, "calls", TABLE), expected) == {}
            assert server.get("/processes/crash/SIGKILL").status == 503
        assert server.get(f"/hasty/loop?path={data}/a").status == 503
        wait_for(lambda: server.get("/hasty/where/1").status == 200, "its process")
        assert "not confined" not in server.err
        (worker,) = children(server)
        forker = int(server.get("/forker/one").body)
        state = Path(f"/proc/{forker}/status").read_text()
        assert "NoNewPrivs:\t1" in state
        assert "Seccomp:\t2" in state
        # A confined worker cannot start it again: the worker is replaced.
        os.kill(forker, signal.SIGKILL)
        os.kill(int(json.loads(server.get("/one/where/1").body)["pid"]), signal.SIGKILL)
        server.get("/one/where/1")
        wait_for(lambda: children(server) not in ([], [worker]), "another worker")
        wait_for(lambda: server.get("/one/where/1").status == 200, "its executor")
    finally:
        server.kill()


def test_every_call_in_every_thread(serve: Serve, tmp_path: Path, expected: dict[str, int]) -> None:
    """In those that run no Python too, the log's and those of libraries; and files are closed to them."""
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text("of another service")
    log = tmp_path / "log"
    log.mkdir()
    server = serve("--access-log", "--access-log-file", str(log / "access.log"))
    (place, _) = json.loads(server.get("/address").body)
    with server.connect() as peer:
        assert peer.request("POST", "/path", os.fsencode(secret)).status in (200, 204)
    for kind in KINDS:  # their threads are there
        ask(server, kind, [])
    names = [name for name in NAMES if name not in NOT_IN_PLACE]
    calls = named([("open", (place, os.O_RDONLY)), *((name, arguments(name)) for name in names)])
    found = ask(server, "all", calls)
    assert any(name.endswith("citius-log") for name in found), found
    assert len(found) >= len(KINDS)  # that of `later` has ended, that of the log is there
    for thread, results in found.items():
        assert results[0] == -errno.EACCES, thread
        wrong = {
            name: (got, expected[name])
            for name, got in zip(names, results[1:], strict=True)
            if (-got if -4096 < got < 0 else 0) != expected[name]
        }
        assert wrong == {}, thread
    secret.unlink()


REFUSED_ARGUMENTS: list[tuple[str, tuple[int, ...]]] = [
    *(
        ("clone", (flag, 0, 0, 0, 0))
        for flag in (
            0x8000,  # CLONE_PARENT
            0x2_0000,
            0x200_0000,
            0x400_0000,
            0x800_0000,
            0x1000_0000,
            0x2000_0000,
            0x4000_0000,  # CLONE_NEW…
        )
    ),
    ("ioctl", (0, 0x5412, 0)),  # TIOCSTI
    ("ioctl", (0, 0x541C, 0)),  # TIOCLINUX
    ("ioctl", (BAD, (1 << 32) | 0x5412, 0)),
    ("fcntl", (0, 1026, 0)),  # F_NOTIFY
    ("fcntl", (0, 1024, 0)),  # F_SETLEASE
    ("socketpair", (1, DGRAM, 0, 0)),  # sends to any Unix socket
    ("socketpair", (1, DGRAM | socket.SOCK_CLOEXEC, 0, 0)),
    ("socketpair", (AF_INET, STREAM, 0, 0)),
    ("sendto", (BAD, 0, 0, FASTOPEN, 0, 0)),
    ("sendto", (BAD, 0, 0, 0, 1, 16)),
    ("sendmsg", (BAD, 0, FASTOPEN)),
    ("sendmsg", (BAD, 0, FASTOPEN | 0x4000)),
    ("setsockopt", (BAD, 6, 31, 0, 0)),  # TCP_ULP
    ("setsockopt", (BAD, 6, 30, 0, 0)),  # TCP_FASTOPEN_CONNECT
    ("setsockopt", (BAD, 6, 19, 0, 0)),  # TCP_REPAIR
    # What later workers would have on the sockets that they take over, or the others of a port.
    *(("setsockopt", (BAD, 1, option, 0, 0)) for option in (18, 25, 26, 27, 44, 50, 51, 52, 68)),
    *(("setsockopt", (BAD, 6, option, 0, 0)) for option in (2, 3, 9, 10, 13, 14, 25, 32, 38)),
    *(("setsockopt", (BAD, 0, option, 0, 0)) for option in (2, 4, 16, 19, 21, 35)),
    *(("setsockopt", (BAD, 41, option, 0, 0)) for option in (1, 16, 20, 73, 75)),
    *(("setsockopt", (BAD, level, 1, 0, 0)) for level in (17, 132, 136, 255, 270, 282, 284, 285)),
    ("setsockopt", (BAD, (1 << 32) | 1, 51, 0, 0)),
    ("prlimit64", (os.getppid(), 7, 0, 0)),
    ("setpriority", (0, 1, 5)),
    ("setpriority", (2, 0, 5)),
    ("sched_setaffinity", (1, 8, 0)),
    ("sched_setscheduler", (1, 0, 0)),
    ("sched_setattr", (1, 0, 0)),
    ("sched_setparam", (1, 0)),
]
NO_SOCKET: list[tuple[str, tuple[int, ...]]] = [
    ("socket", (family, kind, protocol))
    for family, kind, protocol in (
        (AF_INET, STREAM, MPTCP), (AF_INET6, STREAM, MPTCP), (AF_INET, STREAM, SCTP), (AF_INET, 5, SCTP),
        (AF_INET, DGRAM, UDPLITE), (AF_INET, DGRAM, 1), (AF_INET, RAW, 6), (AF_INET6, RAW, 0),
        (AF_INET, 6, 33),
        (AF_NETLINK, RAW, 0), (AF_PACKET, RAW, 0), (AF_PACKET, DGRAM, 0), (AF_VSOCK, STREAM, 0),
        (AF_SMC, STREAM, 0), (38, 5, 0), (21, 5, 0), (29, RAW, 1), (31, STREAM, 3), (44, RAW, 0),
    )
]  # fmt: skip


def test_arguments_by_which_a_worker_would_reach_beyond_itself(serve: Serve) -> None:
    calls = [*REFUSED_ARGUMENTS, *NO_SOCKET]
    found = ask(serve(), "loop", named(calls))
    wrong = [(call, got) for call, got in zip(calls, found, strict=True) if got != errno.EPERM]
    assert wrong == []


@pytest.mark.parametrize(
    ("word", "allowed", "refused"),
    [
        (
            "5432",
            [(AF_INET, STREAM, 0), (AF_INET6, STREAM, 6)],
            [(AF_INET, DGRAM, 0), (1, STREAM, 0)],
        ),
        (
            "udp",
            [(AF_INET, DGRAM, 0), (AF_INET6, DGRAM, 17)],
            [(AF_INET, STREAM, 0), (1, STREAM, 0)],
        ),
        ("unix", [(1, STREAM, 0), (1, DGRAM, 0)], [(AF_INET, STREAM, 0), (AF_INET, DGRAM, 0)]),
    ],
)
def test_sockets_that_are_named(
    serve: Serve,
    word: str,
    allowed: list[tuple[int, ...]],
    refused: list[tuple[int, ...]],
) -> None:
    server = serve("--sandbox-connect", word)
    good = [
        ("socket", (family, kind | flags, protocol))
        for family, kind, protocol in allowed
        for flags in (0, socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
    ]
    assert ask(server, "loop", named(good)) == [0] * len(good)
    bad = [*NO_SOCKET, *(("socket", one) for one in refused), ("listen", (BAD, 1))]
    found = ask(server, "loop", named([*bad]))
    assert [(call, got) for call, got in zip(bad, found, strict=True) if got != errno.EPERM] == []
    # What TCP could connect with besides `connect`.
    flags = [("sendto", (BAD, 0, 0, FASTOPEN, 0, 0)), ("sendmsg", (BAD, 0, FASTOPEN)),
             ("sendmmsg", (BAD, 0, 0, FASTOPEN)), ("setsockopt", (BAD, 6, 31, 0, 0))]  # fmt: skip
    assert ask(server, "loop", named(flags)) == [errno.EPERM] * 4


def test_metadata_that_is_allowed(serve: Serve, tmp_path: Path) -> None:
    found = ask(
        serve("--sandbox-metadata"), "loop", named([(name, arguments(name)) for name in METADATA])
    )
    assert errno.EPERM not in found


def test_the_threads_are_looked_at(serve: Serve) -> None:
    """A signal that is blocked in a thread does not keep it out: the C library's own is taken."""
    server = serve()
    server.signal(signal.SIGHUP)  # the same once more, in a new worker
    server.wait_for_log("replac")
    assert ask(server, "early", named([("execve", (0, 0, 0))])) == [errno.EPERM]
