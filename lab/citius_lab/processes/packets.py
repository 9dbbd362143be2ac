"""Loses and delays packets between the load generator and a server, of TCP and QUIC alike, by a TUN device.

The generator connects to ``HOST``, which the kernel routes to the device. The relay reads each packet, drops
it by chance, and writes it back after half of the round trip as one to 127.0.0.1; those of the server go the
other way. So the kernel's own TCP repeats what was lost, as QUIC does in the processes, and servers that
listen on 127.0.0.1 need not know. Chance has a seed, and the packets of one run differ from those of
another, so that the same share is lost and not the same packets.

Run as ``python packets.py RTT_MS LOSS SEED``, as root; it says so when the device is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from socket import inet_aton
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable


@contextlib.contextmanager
def relayed(rtt_ms: float, loss: float, cpus: Iterable[int]) -> Generator[str]:
    """Yield the host to connect to in place of 127.0.0.1.

    Raises:
        LoadError: There can be no such device, or there is one already.
    """
    # Not for the relay itself, which runs this file alone.
    from citius_lab.errors import LoadError
    from citius_lab.processes import launch

    words = [sys.executable, "-S", __file__, str(rtt_ms), str(loss), str(SEED)]
    process = launch.Guarded(words, cpus=cpus, stderr=subprocess.PIPE)
    try:
        said = process.stderr.readline().decode(errors="replace").strip()
        if said != READY:
            raise LoadError(f"packets cannot be lost here: {said or 'the relay does not start'}")
        yield HOST
    finally:
        process.stop()


class Relay:
    """Packets of one device."""

    def __init__(self, device: int, half_s: float, loss: float, seed: int) -> None:
        self._device = device
        self._half_s = half_s
        self._loss = loss
        self._chance = random.Random(seed)
        self._loop = asyncio.get_running_loop()

    def take(self) -> None:
        """Read what the kernel has for the device."""
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = turned(os.read(self._device, PACKET_BYTES_MAX))
                if packet is None or self._chance.random() < self._loss:
                    continue
                self._loop.call_later(self._half_s, self._give, packet)

    def _give(self, packet: bytes) -> None:
        # A full queue loses it, too.
        with contextlib.suppress(BlockingIOError):
            os.write(self._device, packet)


def turned(packet: bytes) -> bytes | None:
    """Return a packet of IPv4 with the addresses of the other side of the relay; ``None`` for others."""
    addresses = TURNS.get(packet[12:20])
    return None if addresses is None else packet[:12] + addresses + packet[20:]


def device() -> int:
    """Make the device, which is gone with the process, and return its descriptor.

    Raises:
        OSError: The system does not allow it.
    """
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", NAME.encode(), IFF_TUN | IFF_NO_PI))
    for command in (f"address add {OWN}/16 dev {NAME}", f"link set {NAME} up"):
        subprocess.run(["ip", *command.split()], check=True, capture_output=True)
    # 127.0.0.1 may be the source and the destination of packets of this device.
    Path(f"/proc/sys/net/ipv4/conf/{NAME}/route_localnet").write_text("1")
    return descriptor


async def serve(rtt_ms: float, loss: float, seed: int) -> None:
    """Relay packets until the process is ended."""
    descriptor = device()
    relay = Relay(descriptor, rtt_ms / 2000, loss, seed)
    asyncio.get_running_loop().add_reader(descriptor, relay.take)
    print(READY, file=sys.stderr, flush=True)
    await asyncio.Event().wait()


SEED = 34
READY = "ready"
NAME = "citius-lab"
# Addresses for measurements (RFC 2544). The checksums of a packet stay right, because the 16-bit words of
# both pairs of addresses have the same sum (RFC 1624).
OWN, HOST = "198.18.77.1", "198.18.184.240"
CLIENT, SERVER = "198.18.77.3", "127.0.0.1"
TURNS = {
    inet_aton(OWN) + inet_aton(HOST): inet_aton(CLIENT) + inet_aton(SERVER),
    inet_aton(SERVER) + inet_aton(CLIENT): inet_aton(HOST) + inet_aton(OWN),
}
PACKET_BYTES_MAX = 65_536
# linux/if_tun.h
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000

if __name__ == "__main__":
    try:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])))
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
