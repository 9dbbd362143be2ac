"""The supervisor's part in rooms: it gives each two workers that have rooms a pair of connected sockets.

serving/rooms.py describes the whole. The supervisor keeps no end of a link and reads nothing of workers but
that they have rooms: what passes over the links is no business of its.
"""

from __future__ import annotations

import select
from socket import (
    AF_UNIX,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    send_fds,
    socket,
    socketpair,
)
from typing import TYPE_CHECKING

from citius.observability import logging
from citius.serving.rooms import JOIN, LINKED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius.serving.supervisor.worker import Worker


def control_pair() -> tuple[socket, socket]:
    """The supervisor's and the worker's end of a control socket."""
    ours, its = socketpair(AF_UNIX, SOCK_SEQPACKET)
    ours.setblocking(False)
    return ours, its


def register(poll: select.poll, workers: Iterable[Worker]) -> dict[int, Worker]:
    """Wait for control sockets; the workers by their descriptors."""
    waiting = {w.control.fileno(): w for w in workers if w.control is not None}
    for fd, worker in waiting.items():
        # Nothing that comes later means anything, but its end is noticed without being asked for.
        poll.register(fd, 0 if worker.has_rooms else select.POLLIN)
    return waiting


def take(worker: Worker, workers: Iterable[Worker]) -> None:
    """Something has come: the worker has rooms, and is linked with the others that have; or it has ended."""
    assert worker.control is not None, "it was waited for"
    try:
        said = b"" if worker.has_rooms else worker.control.recv(len(JOIN))
    except OSError:
        said = b""
    if said != JOIN:
        worker.control.close()
        worker.control = None
        return
    worker.has_rooms = True
    for other in workers:
        if other is not worker and other.has_rooms and other.control is not None:
            _link(worker, other)
    _tell(worker, LINKED, [])


def _link(worker: Worker, other: Worker) -> None:
    try:
        one, two = socketpair(AF_UNIX, SOCK_STREAM)
    except OSError as error:
        logging.error(f"the rooms of workers {worker.pid} and {other.pid} are not linked: {error}")
        return
    # If only one of the two gets its end, it reads the end of the link at once.
    with one, two:
        _tell(worker, b"%d" % other.pid, [one.fileno()])
        _tell(other, b"%d" % worker.pid, [two.fileno()])


def _tell(worker: Worker, what: bytes, fds: list[int]) -> None:
    assert worker.control is not None, "it has rooms"
    try:
        send_fds(worker.control, [what], fds)
    except (BrokenPipeError, ConnectionResetError):
        return  # it has just ended
    except OSError as error:
        # One that is stopped takes no more than some hundreds.
        logging.error(f"worker {worker.pid} does not take links for its rooms: {error}")
