"""Rooms across the workers of one machine.

The supervisor makes a directory, and each worker that has a room a datagram socket in it. A message to a
room goes to all sockets that are there; who has no room of that name drops it. There is no centre: workers
come and go, and a supervisor that hands over to another leaves the old workers among themselves.

A message travels in pieces, for the kernel bounds datagrams; those of one sender arrive in order, so pieces
are put together by who sent them. A worker that does not take its datagrams loses messages, and nobody waits
for it: rooms are for what is of interest now.
"""

from __future__ import annotations

import os
import queue
import socket
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from citius import logging
from citius.privileges import Identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Room
    from citius.config import Config

# Sender's process, its message's number, number of the piece, whether it is the last, whether the message
# is text, bytes of the name.
_HEAD = struct.Struct("!QIH??H")
# Bytes of a message in one datagram; Linux lets 200 KiB pass by default.
_PIECE_BYTES = 64 * 1024
# An address of a Unix socket has 107 bytes; a slash and the number of a process come behind the directory.
_DIRECTORY_BYTES_MAX = 107 - len("/4194304")
# Messages that wait for workers whose sockets are full, and how long one piece waits for one of them.
_WAITING_MAX = 1024
_PATIENCE_S = 1.0
# Bytes of an unfinished message that are kept of one sender.
_MESSAGE_BYTES_MAX = 64 * 1024 * 1024


def make_directory(config: Config) -> str | None:
    """A directory for the sockets of the workers, who may be somebody else; ``None`` if there can be none."""
    try:
        name = f"citius-rooms-{os.getpid()}-{os.urandom(6).hex()}"
        directory = os.path.join(os.environ.get("TMPDIR", "/tmp"), name)
        if len(os.fsencode(directory)) > _DIRECTORY_BYTES_MAX:
            directory = os.path.join("/tmp", name)
        os.mkdir(directory, 0o700)
        identity = Identity.of(config)
        if (identity.uid, identity.gid) != (-1, -1):
            os.chown(directory, identity.uid, identity.gid)
    except OSError as error:
        logging.warning(f"rooms will not reach other workers: {error}")
        return None
    return directory


def remove_directory(directory: str | None) -> None:
    """Remove it with what is in it."""
    if directory is None:
        return
    with suppress(OSError):
        for name in os.listdir(directory):
            os.unlink(os.path.join(directory, name))
        os.rmdir(directory)


class Relay:
    """Hands messages of rooms to the other workers, and theirs to the rooms here."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._path = os.path.join(directory, str(os.getpid()))
        self._rooms: dict[str, Room] = {}
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()
        self._number = 0
        self._peers: tuple[int, list[str]] = (-1, [])
        self._waiting: queue.Queue[list[bytes] | None] = queue.Queue(_WAITING_MAX)
        self._is_behind = False
        self._has_warned = False

    def share(self, name: str, room: Room) -> None:
        """Make the rooms of this name one."""
        self._rooms[name] = room
        room._set_relay(self._sender(name))  # pyright: ignore[reportPrivateUsage]
        if self._socket is None:
            self._open()

    def close(self) -> None:
        """Take no more messages."""
        for room in self._rooms.values():
            room._set_relay(None)  # pyright: ignore[reportPrivateUsage]
        if self._socket is not None:
            with suppress(OSError):
                os.unlink(self._path)
            with suppress(queue.Full):
                self._waiting.put_nowait(None)

    def _open(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            made.bind(self._path)
        except OSError as error:
            made.close()
            logging.warning(f"rooms do not reach other workers: {error}")
            return
        self._socket = made
        # Threads, so that it is the same for all hosts; they sleep unless there is something to hand on.
        threading.Thread(target=self._receive, name="citius-rooms", daemon=True).start()

    # --- sending --------------------------------------------------------------------------------

    def _sender(self, name: str) -> Callable[[bool, bytes], None]:
        encoded = name.encode()

        def send(is_text: bool, payload: bytes) -> None:
            with self._lock:
                self._send(self._pieces(encoded, is_text, payload))

        return send

    def _pieces(self, name: bytes, is_text: bool, payload: bytes) -> list[bytes]:
        self._number = (self._number + 1) & 0xFFFF_FFFF
        starts = range(0, max(len(payload), 1), _PIECE_BYTES)
        return [
            _HEAD.pack(
                os.getpid(),
                self._number,
                at,
                start + _PIECE_BYTES >= len(payload),
                is_text,
                len(name),
            )
            + name
            + payload[start : start + _PIECE_BYTES]
            for at, start in enumerate(starts)
        ]

    def _send(self, pieces: list[bytes]) -> None:
        """To all others; what does not go at once is left to a thread, and all that follows with it."""
        assert self._socket is not None, "the relay is set after the socket"
        if not self._is_behind:
            try:
                for peer in self._others():
                    for piece in pieces:
                        self._send_piece(peer, piece, socket.MSG_DONTWAIT)
            except BlockingIOError:
                # Whoever has had it drops the second copy by its number.
                self._is_behind = True
                threading.Thread(
                    target=self._catch_up, name="citius-rooms-late", daemon=True
                ).start()
            else:
                return
        try:
            self._waiting.put_nowait(pieces)
        except queue.Full:
            if not self._has_warned:
                self._has_warned = True
                logging.warning("messages to rooms are lost: a worker does not take them")

    def _catch_up(self) -> None:
        """Send what waits, until nothing does."""
        # One of its own: a duplicate would make the reader's impatient too.
        sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        sender.settimeout(_PATIENCE_S)
        with sender:
            while True:
                with self._lock:
                    try:
                        pieces = self._waiting.get_nowait()
                    except queue.Empty:
                        self._is_behind = False
                        return
                if pieces is None:
                    return
                for peer in self._others():
                    with suppress(OSError):  # one that is stuck loses it
                        for piece in pieces:
                            sender.sendto(piece, peer)

    def _send_piece(self, peer: str, piece: bytes, flags: int) -> None:
        assert self._socket is not None, "there is something to send"
        try:
            self._socket.sendto(piece, flags, peer)
        except (ConnectionRefusedError, FileNotFoundError):
            # Its worker has ended without a word.
            with suppress(OSError):
                os.unlink(peer)

    def _others(self) -> list[str]:
        """Sockets of the other workers; looked up anew when the directory has changed."""
        try:
            changed_at = os.stat(self._directory).st_mtime_ns
            if changed_at != self._peers[0]:
                paths = [
                    os.path.join(self._directory, name) for name in os.listdir(self._directory)
                ]
                self._peers = changed_at, [path for path in paths if path != self._path]
        except FileNotFoundError:
            return []
        return self._peers[1]

    # --- receiving ------------------------------------------------------------------------------

    def _receive(self) -> None:
        assert self._socket is not None, "it is open before its thread starts"
        partial: dict[int, tuple[int, int, bytes]] = {}
        last: dict[int, int] = {}
        while True:
            try:
                datagram = self._socket.recv(_PIECE_BYTES + 70_000)
            except OSError:
                return
            sender, number, at, is_last, is_text, name_bytes = _HEAD.unpack_from(datagram)
            name = datagram[_HEAD.size : _HEAD.size + name_bytes]
            piece = datagram[_HEAD.size + name_bytes :]
            if last.get(sender) == number:
                continue
            before_number, before_at, before = partial.pop(sender, (number, -1, b""))
            if before_number != number or at == 0:  # a message that is sent once more begins anew
                before_at, before = -1, b""
            if at != before_at + 1 or len(before) + len(piece) > _MESSAGE_BYTES_MAX:
                continue
            if not is_last:
                partial[sender] = number, at, before + piece
                continue
            last[sender] = number
            room = self._rooms.get(name.decode())
            if room is not None:
                room._deliver(is_text, before + piece)  # pyright: ignore[reportPrivateUsage]
