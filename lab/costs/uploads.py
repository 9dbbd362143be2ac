#!/usr/bin/env python3
"""What uploads of 200 MiB cost: memory of the worker, and the times of other requests meanwhile.

Usage: .venv/bin/python lab/costs/uploads.py [MiB]

A worker serves a route with a file parameter and one that returns a text. One client uploads; another sends
200 requests per second for the text, before the uploads and during them. The table is that of
docs/guides/forms.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from multiprocessing import Process
from pathlib import Path

APP = """
import os
from typing import Annotated
from citius import App, File, UploadFile

app = App()

@app.get("/")
def text() -> str:
    return str(os.getpid())

@app.post("/upload", body_bytes_max=1 << 40)
def upload(file: Annotated[UploadFile, File()]) -> str:
    return str(file.size)
"""
MIB = 1024 * 1024
N_UPLOADS = 5


def main() -> None:
    """Serve, measure, stop."""
    n_mib = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "app.py").write_text(APP)
        command = [
            sys.executable,
            "-m",
            "citius",
            "serve",
            "app:app",
            "--port",
            "0",
            "--no-access-log",
        ]
        limit = f"--body-spooled-bytes-max={max(1024, 2 * n_mib) * MIB}"
        server = subprocess.Popen(
            [*command, limit], cwd=directory, stderr=subprocess.PIPE, text=True
        )
        try:
            measure(port_of(server), n_mib)
        finally:
            server.terminate()
            server.wait()


def port_of(server: subprocess.Popen[str]) -> int:
    """Where a server listens, once it does."""
    assert server.stderr is not None
    for line in server.stderr:
        if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
            return int(found[1])
    raise SystemExit("the server did not start")


def measure(port: int, n_mib: int) -> None:
    """Print the table."""
    idle = ask(port, until=time.monotonic() + 3)
    pid = int(idle[0])
    upload(port, 2)
    before = resident_kib(pid)
    uploading = Process(target=upload, args=(port, n_mib, N_UPLOADS))
    start = time.monotonic()
    uploading.start()
    busy = ask(port, while_=uploading)
    seconds = time.monotonic() - start
    more = (resident_kib(pid) - before) / 1024
    print("| | p50 | p99 | longest |\n|---|---:|---:|---:|")
    print(f"| without the upload | {row(idle[1])} |")
    print(f"| during {N_UPLOADS} uploads of {n_mib} MiB in {seconds:.1f} s | {row(busy[1])} |")
    print(f"\nmemory of the worker: {more:.1f} MiB more")


def ask(
    port: int, *, until: float = float("inf"), while_: Process | None = None
) -> tuple[str, list[float]]:
    """Send requests; gives the last response and all times in seconds."""
    connection = HTTPConnection("127.0.0.1", port)
    times: list[float] = []
    body = ""
    due = time.monotonic()
    while due < until and (while_ is None or while_.is_alive()):
        time.sleep(max(0.0, due - time.monotonic()))
        connection.request("GET", "/")
        body = connection.getresponse().read().decode()
        # From the time at which it was due: a request that waited for the one before counts its waiting.
        times.append(time.monotonic() - due)
        due += 1 / 200
    return body, times


def upload(port: int, n_mib: int, times: int = 1) -> None:
    """Upload a file of so many MiB, so many times."""
    first = b'--XX\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n'
    last, piece = b"\r\n--XX--\r\n", os.urandom(MIB)
    connection = HTTPConnection("127.0.0.1", port)
    for _ in range(times):
        connection.putrequest("POST", "/upload")
        connection.putheader("content-type", "multipart/form-data; boundary=XX")
        connection.putheader("content-length", str(len(first) + n_mib * MIB + len(last)))
        connection.endheaders(first)
        for _ in range(n_mib):
            connection.send(piece)
        connection.send(last)
        assert connection.getresponse().read() == str(n_mib * MIB).encode()


def resident_kib(pid: int) -> int:
    """The most memory that a process has had so far."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1])


def row(times: list[float]) -> str:
    """The cells of a row."""
    times = sorted(times)
    picked = (times[len(times) // 2], times[len(times) * 99 // 100], times[-1])
    return " | ".join(f"{1000 * one:.1f} ms" for one in picked)


if __name__ == "__main__":
    main()
