"""What servers take to install, to start, and of memory: the table of docs/comparison.md.

    install.py [--write] WHEEL

Each server is installed into an empty environment of this Python, with what it recommends (uvloop,
httptools), and serves the same ASGI application, which responds with 13 bytes; Citius from the wheel
of a path, the others from the index. `--write` puts the table into the page.

The time of a start is that from the process to the first response, the median of 11. Memory is the
proportional set size after 100 requests: of all processes of a server with one worker, and of the largest
process of one with two.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "comparison.md"
STARTS = 11
REQUESTS = 100
APPLICATIONS = {
    "hello.py": """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"13")]})
        await send({"type": "http.response.body", "body": b"Hello, world!"})
""",
    "native.py": """
from citius import App

app = App()

@app.get("/")
def hello() -> str:
    return "Hello, world!"
""",
}


@dataclass(frozen=True)
class Contender:
    """A server: its own distribution, what is installed, and how it is started.

    Attributes:
        name: As the table has it.
        own: The name of its own distribution.
        packages: What pip is told to install.
        command: The command and its options, but for the port and the number of workers.
    """

    name: str
    own: str
    packages: tuple[str, ...]
    command: tuple[str, ...]


def contenders(wheel: str) -> list[Contender]:
    """Return the servers in the order of the table."""
    quiet = "--no-access-log"
    granian = ("granian", "--interface", "asgi", quiet, "hello:app")
    return [
        Contender("Citius", "citius", (wheel,), ("citius", "serve", "hello:app", quiet)),
        Contender("Citius, native", "citius", (wheel,), ("citius", "serve", "native:app", quiet)),
        Contender("granian", "granian", ("granian[uvloop]",), granian),
        Contender("uvicorn", "uvicorn", ("uvicorn[standard]",), ("uvicorn", "hello:app", quiet)),
        Contender(
            "gunicorn", "gunicorn", ("gunicorn", "uvloop"), ("gunicorn", "-k", "asgi", "hello:app")
        ),
        Contender("Hypercorn", "hypercorn", ("hypercorn", "uvloop"), ("hypercorn", "hello:app")),
    ]


def main() -> None:
    """Measure all, and print or write the table."""
    wheel = str(Path(sys.argv[-1]).resolve())
    rows = [measure(contender) for contender in contenders(wheel)]
    table = "\n".join([*head(), *rows])
    print(table)
    if "--write" in sys.argv:
        text = PAGE.read_text()
        begin, end = "<!-- install: begin -->", "<!-- install: end -->"
        text = re.sub(
            f"{begin}.*?{end}", lambda _: f"{begin}\n{table}\n{end}", text, flags=re.DOTALL
        )
        PAGE.write_text(text)


def head() -> list[str]:
    """Return the lines above the rows."""
    version = ".".join(map(str, sys.version_info[:3]))
    columns = [
        "",
        "own wheel",
        "installed",
        "packages",
        "first response",
        "memory with one worker",
        "of two",
    ]
    return [
        f"Each in an empty environment of CPython {version} on {os.uname().machine}, with uvloop,",
        "serving the same ASGI application; in the second row a handler of Citius' own. MB are 10⁶ bytes.",
        "Memory is the proportional set size, in the last column that of the largest process.",
        "",
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
    ]


def measure(contender: Contender) -> str:
    """Return the row of one server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in APPLICATIONS.items():
            (folder / file).write_text(text)
        wheels = install(contender, folder)
        (own,) = (wheel for wheel in wheels if wheel.name.lower().startswith(f"{contender.own}-"))
        libraries = next((folder / "venv/lib").glob("python*/site-packages"))
        installed = sum(file.stat().st_size for file in libraries.rglob("*") if file.is_file())
        # The first start writes bytecode, as it does for every user.
        start_ms(contender, folder)
        start = statistics.median(start_ms(contender, folder) for _ in range(STARTS))
        alone = memory_mb(contender, folder, workers=1)
        of_two = memory_mb(contender, folder, workers=2)
    version = own.name.split("-")[1]
    cells = [
        contender.name if "," in contender.name else f"{contender.name} {version}",
        f"{own.size / 1e6:.2f}\u00a0MB",
        f"{installed / 1e6:.1f}\u00a0MB",
        str(len(wheels)),
        f"{start:.0f}\u00a0ms",
        f"{alone:.1f}\u00a0MB",
        f"{of_two:.1f}\u00a0MB",
    ]
    return f"| {' | '.join(cells)} |"


@dataclass(frozen=True)
class Wheel:
    """A wheel that was installed."""

    name: str
    size: int


def install(contender: Contender, folder: Path) -> list[Wheel]:
    """Make an environment with the server in it; return what it took."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = folder / "wheels"
    download = ["download", "--only-binary=:all:", "-d", wheels, *contender.packages]
    subprocess.run([*pip, *download], check=True)
    files = sorted(wheels.iterdir())
    python = f"--python={folder / 'venv/bin/python'}"
    subprocess.run([*pip, python, "install", "--no-deps", "--no-compile", *files], check=True)
    return [Wheel(file.name, file.stat().st_size) for file in files]


def start_ms(contender: Contender, folder: Path) -> float:
    """Return the time from a start to the first response."""
    began = time.monotonic()
    with running(contender, folder, workers=1):
        return (time.monotonic() - began) * 1000


def memory_mb(contender: Contender, folder: Path, workers: int) -> float:
    """Return the memory of the process that serves, or of the larger of two that do."""
    with running(contender, folder, workers) as (process, port):
        for _ in range(REQUESTS):
            get(port)
        # A server may have processes beside the workers: multiprocessing's resource tracker, a supervisor.
        found = sorted(map(pss_mb, processes(process.pid)))
        return sum(found) if workers == 1 else found[-1]


@contextlib.contextmanager
def running(
    contender: Contender, folder: Path, workers: int
) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    """Run a server until it has responded once and the block is left."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    named = contender.own in ("gunicorn", "hypercorn")
    address = ["--bind", f"127.0.0.1:{port}"] if named else ["--port", str(port)]
    command = [folder / "venv/bin" / contender.command[0], *contender.command[1:], *address]
    if workers > 1:
        command += ["--workers", str(workers)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_for_response(process, port, folder / "log")
        yield process, port
        process.terminate()
        process.wait(30)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_response(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return as soon as it serves."""
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        try:
            get(port)
        except OSError:
            time.sleep(0.002)
        else:
            return
    sys.exit(f"install: no response: {log.read_text()}")


def get(port: int) -> None:
    """Request it."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as response:
        assert response.read() == b"Hello, world!"


def processes(pid: int) -> list[int]:
    """Return a process and all below it."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in below for found in processes(int(child)))]


def pss_mb(pid: int) -> float:
    """Return the proportional set size of a process."""
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


if __name__ == "__main__":
    main()
