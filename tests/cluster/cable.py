"""A network cable in user space that delays and loses packets: for kernels without netem.

    cable.py DEVICE NAMESPACE DEVICE NAMESPACE FILE

Makes two tap devices, one in each namespace; what one sends the other receives, later by the
milliseconds that the file says, less the percentage that it says. The file is read again ten times a
second.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

_TUNSETIFF = 0x400454CA
_IFF_TAP, _IFF_NO_PI = 0x0002, 0x1000
_FRAME_BYTES_MAX = 65536


def tap(device: str, namespace: str) -> int:
    """A tap device in a namespace; its descriptor."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = f"ct{os.getpid()}{namespace[-3:]}"[:15]
    fcntl.ioctl(fd, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
    move = ["ip", "link", "set", name, "netns", namespace, "name", device]
    subprocess.run(move, check=True)
    return fd


def main() -> None:
    """Carry frames until killed."""
    one, first, two, second, file = sys.argv[1:]
    ends = [tap(one, first), tap(two, second)]
    print("ready", flush=True)
    waiting: list[tuple[float, int, int, bytes]] = []
    number, read_at, delay_s, loss = 0, 0.0, 0.0, 0.0
    while True:
        now = time.monotonic()
        if now > read_at:
            with open(file) as said:
                values = said.read().split()
            if len(values) == 2:
                delay_s, loss = float(values[0]) / 1000, float(values[1]) / 100
            read_at = now + 0.1
        while waiting and waiting[0][0] <= now:
            _, _, end, frame = heapq.heappop(waiting)
            try:
                os.write(ends[end], frame)
            except OSError:
                continue  # its device is down, or its queue full: lost
        timeout = max(0.0, waiting[0][0] - now) if waiting else 0.1
        for fd in select.select(ends, [], [], min(timeout, 0.1))[0]:
            try:
                frame = os.read(fd, _FRAME_BYTES_MAX)
            except OSError:
                continue
            if random.random() >= loss:
                number += 1
                at = time.monotonic() + delay_s
                heapq.heappush(waiting, (at, number, 1 - ends.index(fd), frame))


if __name__ == "__main__":
    main()
