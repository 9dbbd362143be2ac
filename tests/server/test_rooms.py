"""Rooms over several workers: what is sent in one arrives in all, in order, or is counted."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from citius import Room
from citius.serving import rooms
from rig import Server, application, children, is_alive, wait_for
from wspeer import RawSocket

ROOMS = application("rooms_app")


def in_all_workers(server: Server, count: int) -> dict[str, RawSocket]:
    """A socket in each of so many workers."""
    found: dict[str, RawSocket] = {}

    def is_complete() -> bool:
        client = RawSocket(server).accepted()
        worker = str(client.message())
        if worker in found:
            client.peer.close()
        else:
            found[worker] = client
        return len(found) == count

    wait_for(is_complete, f"connections to {count} workers")
    return found


def say_everywhere(clients: dict[str, RawSocket], *messages: str) -> None:
    """Each sends the messages, and all get them."""
    for sender in clients.values():
        for message in messages:
            sender.text(message)
            for client in clients.values():
                assert client.message() == message


def missed(client: RawSocket) -> int:
    """What the room in the client's worker has counted."""
    client.text("missed")
    return int(client.message())


def test_rooms_reach_all_workers(serve) -> None:
    server = serve(ROOMS, "--workers", "3")
    clients = in_all_workers(server, 3)
    say_everywhere(clients, "short", "ä" * 200_000, "", "x" * 5_000_000, "short")
    # A worker that is killed leaves the others talking; its successor joins them.
    killed = next(iter(clients))
    os.kill(int(killed), signal.SIGKILL)
    clients.pop(killed).peer.close()
    say_everywhere(clients, "without it")
    newcomers = in_all_workers(server, 3)
    next(iter(newcomers.values())).text("all here")
    for client in (*newcomers.values(), *clients.values()):
        assert client.message() == "all here"
    server.signal(signal.SIGTERM)
    for client in (*newcomers.values(), *clients.values()):
        client.peer.close()
    assert server.wait() == 0


def test_workers_that_come_later_are_linked(serve) -> None:
    server = serve(ROOMS, "--workers", "2")
    server.signal(signal.SIGTTIN)
    clients = in_all_workers(server, 3)
    say_everywhere(clients, "three of them")
    for client in clients.values():  # the old workers would wait for them
        client.peer.close()
    before = children(server)
    server.signal(signal.SIGHUP)
    server.wait_for_log("all workers are new")
    # An old one may have accepted a connection that it closes then.
    wait_for(lambda: not any(map(is_alive, before)), "the end of the old workers")
    clients = in_all_workers(server, 3)
    say_everywhere(clients, "three new ones")
    server.signal(signal.SIGTTOU)
    server.wait_for_log("one worker less")
    by_socket = {client.peer.socket: pid for pid, client in clients.items()}
    with selectors.DefaultSelector() as told:
        for peer in by_socket:
            told.register(peer, selectors.EVENT_READ)
        ready = told.select(30)
    leaving = clients.pop(by_socket[ready[0][0].fileobj])
    assert leaving.frame().code == 1012
    leaving.peer.close()
    say_everywhere(clients, "two of them")


def test_a_burst_arrives_whole_and_in_order(serve) -> None:
    server = serve(ROOMS, "--workers", "2", "--write-queue-bytes-max", "100000000")
    sender, receiver = in_all_workers(server, 2).values()
    for count, size in ((10_000, 10), (30, 1_000_000)):
        sender.text(f"burst {count} {size}")
        for client in (receiver, sender):
            messages = [str(message) for message in client.messages(count)]
            assert [int(message[:6]) for message in messages] == list(range(count))
            assert {len(message) for message in messages} == {6 + size}
    assert missed(sender) == missed(receiver) == 0


def test_a_stopped_worker_keeps_nothing_from_the_others(serve) -> None:
    """What is lost for it is counted, and what is not lost it gets in order."""
    server = serve(
        ROOMS,
        "--workers",
        "3",
        "--room-queue-bytes-max",
        "200000",
        "--write-queue-bytes-max",
        "100000000",
    )
    clients = in_all_workers(server, 3)
    stopped, slow = clients.popitem()
    os.kill(int(stopped), signal.SIGSTOP)
    try:
        sender, other = clients.values()
        for _ in range(50):  # so that the healthy one keeps up
            sender.text("burst 20 1000")
            for client in (other, sender):
                assert len(list(client.messages(20))) == 20
        lost = missed(sender)
        assert lost > 0
        server.wait_for_log(f"bytes wait for worker {stopped}, which does not take them")
    finally:
        os.kill(int(stopped), signal.SIGCONT)
    numbers = [int(str(message)[:6]) for message in slow.messages(1000 - lost)]
    assert numbers == [n % 20 for n in range(1000 - lost)]
    say_everywhere({**clients, stopped: slow}, "all of them again")
    assert missed(sender) == lost
    assert server.err.count("which does not take them") == 1


def test_a_worker_whose_loop_is_blocked_takes_no_more_than_the_limit(serve, tmp_path: Path) -> None:
    server = serve(
        ROOMS,
        "--workers",
        "2",
        "--room-queue-bytes-max",
        "1000000",
        "--write-queue-bytes-max",
        "100000000",
    )
    sender, blocked = in_all_workers(server, 2).values()
    blocked.text(f"block {tmp_path}/go")
    for n in range(100):
        sender.text("burst 10 10000")
        assert len(list(sender.messages(10))) == 10, n
    wait_for(lambda: missed(sender) > 0 or sender.text("burst 10 10000"), "a loss")
    lost = missed(sender)
    assert lost > 500
    (tmp_path / "go").touch()
    assert len(list(blocked.messages(1000 - lost))) == 1000 - lost


def test_names_of_rooms_are_any_text(serve) -> None:
    server = serve(
        application("room_names_app"),
        "--workers", "2",
    )  # fmt: skip
    clients = in_all_workers(server, 2)
    for sender in clients.values():
        sender.text("hello")
        for client in clients.values():
            assert list(client.messages(3)) == ["0 hello", "1 hello", "2 hello"]


def test_a_process_that_a_handler_forks_has_no_part_in_the_rooms(serve) -> None:
    server = serve(
        ROOMS,
        "--workers", "2", "--room-queue-bytes-max", "100000",
    )  # fmt: skip
    clients = in_all_workers(server, 2)
    forked, other = clients
    children: list[int] = []

    def has_forked() -> bool:
        children.append(int(server.get(f"/fork/{forked}").body))
        return children[-1] > 0

    wait_for(has_forked, "a child of the worker")
    try:
        say_everywhere(clients, "not from the child")
        os.kill(int(forked), signal.SIGKILL)
        wait_for(lambda: not is_alive(int(forked)), "the end of the worker")
        # A link that the child held would take a third of it. The worker in the place of the killed one reads
        # each burst before the next, or it would be the one that misses some.
        receivers = in_all_workers(server, 2)
        for _ in range(20):
            receivers[other].text("burst 50 1000")
            for client in receivers.values():
                assert len(list(client.messages(50))) == 50
        assert missed(receivers[other]) == 0
    finally:
        os.kill(children[-1], signal.SIGKILL)


def test_rooms_reach_all_workers_under_gevent(serve) -> None:
    pytest.importorskip("gevent")
    server = serve(
        """
        from citius import SerialWebSocket

        room = app.room("all")

        @app.websocket("/")
        def join(ws: SerialWebSocket):
            room.join(ws.socket)
            ws.send(str(os.getpid()))
            for message in ws:
                room.send(message)
        """,
        "--workers", "2", "--loop", "gevent",
    )  # fmt: skip
    say_everywhere(in_all_workers(server, 2), "hello", "x" * 1_000_000)


def test_rooms_of_a_worker_that_cannot_be_linked_are_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_descriptor_left() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    warnings: list[str] = []
    monkeypatch.setattr(rooms, "epoll", no_descriptor_left)
    monkeypatch.setattr(rooms.logging, "warning", warnings.append)
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    relay = rooms.Relay(its, 1000)
    relay.begin()
    with ours:
        for name in ("one", "two"):
            room = Room()
            relay.share(name, room)
            assert room.send("hello") == 0
            assert room.missed == 0
        assert ours.recv(10) == b"", "the supervisor learns that nothing can be linked"
    assert warnings == ["rooms do not reach other workers: [Errno 24] Too many open files"]
    relay.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_workers_of_another_user_cannot_make_the_supervisor_delete_files(
    serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short, as paths of sockets have to be.
    with tempfile.TemporaryDirectory(dir="/tmp") as temporary:
        monkeypatch.setenv("TMPDIR", temporary)
        stop_with_planted_links(serve, tmp_path, Path(temporary))


def stop_with_planted_links(serve, tmp_path: Path, temporary: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("of root's")
    temporary.chmod(0o1777)
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    try:
        subprocess.run([sys.executable, "-c", "import asyncio"], user=65534, check=True)
        identity = "--user"
    except (PermissionError, subprocess.CalledProcessError):
        identity = "--group"  # this Python is in a home directory, where others cannot read it
    server = serve(ROOMS, "--workers", "2", identity, "65534")
    clients = in_all_workers(server, 2)
    say_everywhere(clients, "hello")
    for client in clients.values():
        client.peer.close()
    # As the workers' user could with what is given to that user.
    for entry in temporary.iterdir():
        entry.rename(tmp_path / "moved")
        entry.symlink_to(precious)
    server.signal(signal.SIGTERM)
    assert server.wait() == 0
    assert (precious / "file").exists()
    assert not list(temporary.glob("citius-*")), "rooms need no files"
