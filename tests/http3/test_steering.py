"""The kernel gives each datagram to the socket that its connection id names (citius-quic/src/steering.rs)."""

from __future__ import annotations

import hashlib
import hmac
import os
import random
import select
import socket
import struct
from collections.abc import Generator

import pytest
from citius._core import steering_program
from citius.serving.sockets import attach_program

SO_ATTACH_REUSEPORT_CBPF = 51
SOCKETS, OPEN = 5, 4
SECRET = bytes(range(32))
CHECK = 0
WORD = (1 << 32) - 1


def rotate_right(word: int, by: int) -> int:
    return (word >> by | word << (32 - by)) & WORD


def encrypt(x: int, y: int, secret: bytes = SECRET) -> bytes:
    """Speck64/128 by its definition, with the key that the server derives for connection ids."""
    derived = hmac.digest(secret, b"citius quic: connection ids", hashlib.sha256)
    key, *others = struct.unpack(">4I", derived[:16])
    for index in range(27):
        x = ((rotate_right(x, 8) + y) & WORD) ^ key
        y = rotate_right(y, 29) ^ x
        other = ((key + rotate_right(others[index], 8)) & WORD) ^ index
        others.append(other)
        key = rotate_right(key, 29) ^ other
    return struct.pack(">II", x, y)


def connection_id(slot: int, generation: int = 7, check: int = CHECK) -> bytes:
    return encrypt(slot << 16 | generation << 8 | check, random.getrandbits(32))


def short(cid: bytes) -> bytes:
    return b"\x40" + cid + bytes(30)


def long(cid: bytes) -> bytes:
    return b"\xe0\x00\x00\x00\x01" + bytes([len(cid)]) + cid + bytes(30)


@pytest.fixture(params=[socket.AF_INET, socket.AF_INET6], ids=["IPv4", "IPv6"])
def group(request: pytest.FixtureRequest) -> Generator[list[socket.socket]]:
    sockets: list[socket.socket] = []
    is_ipv6 = request.param == socket.AF_INET6
    address = ("::1" if is_ipv6 else "127.0.0.1", 0)
    for _ in range(SOCKETS):
        made = socket.socket(request.param, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
        address = made.getsockname()
        sockets.append(made)
    program = steering_program(SECRET, is_ipv6=is_ipv6, sockets=OPEN)
    attach_program(sockets[0], SO_ATTACH_REUSEPORT_CBPF, program)
    yield sockets
    for made in sockets:
        made.close()


def receiver(group: list[socket.socket], datagram: bytes, sender: socket.socket) -> int:
    sender.sendto(datagram, group[0].getsockname())
    readable, _, _ = select.select(group, [], [], 5)
    assert len(readable) == 1
    assert readable[0].recv(4096) == datagram
    return group.index(readable[0])


@pytest.mark.parametrize("form", [short, long])
@pytest.mark.parametrize("slot", range(SOCKETS))
def test_a_datagram_reaches_the_slot_of_its_id(group, form, slot) -> None:
    with socket.socket(group[0].family, socket.SOCK_DGRAM) as sender:
        for generation in (0, 1, 255):
            assert receiver(group, form(connection_id(slot, generation)), sender) == slot


def test_other_ids_stay_with_one_socket_for_each_client(group) -> None:
    """What a client has chosen, and an id of another server: by addresses, among those with new clients."""
    found: set[int] = set()
    for _ in range(64):
        with socket.socket(group[0].family, socket.SOCK_DGRAM) as sender:
            others = [
                long(os.urandom(20)),
                long(connection_id(1, check=1)),
                short(connection_id(1, check=99)),
                long(encrypt(1 << 16, 5, b"another secret".ljust(32, b"."))[:7]),
            ]
            places = {receiver(group, datagram, sender) for datagram in others}
            assert len(places) == 1
            found |= places
    assert found == set(range(OPEN))


def test_clients_of_a_slot_without_a_socket_go_to_another(group) -> None:
    with socket.socket(group[0].family, socket.SOCK_DGRAM) as sender:
        receiver(group, short(connection_id(SOCKETS)), sender)


def test_short_packets_are_dropped(group) -> None:
    with socket.socket(group[0].family, socket.SOCK_DGRAM) as sender:
        for datagram in (b"\x40", b"\xc0\x00\x00\x00\x01", long(b"")[:7]):
            receiver(group, datagram, sender)
