"""memcheck of valgrind finds nothing in a server whose compiled handlers wait, on its reactor and on threads.

Rust's tests of channels, coroutines and goroutines run under it by ``scripts/sanitize memcheck``.
"""

from __future__ import annotations

import os
import shutil
import signal
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import PLAIN, Server, application

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind here"),
    pytest.mark.timeout(900),
]

HANDLERS = {
    "sum_of_squares": b"328350",
    "fan_out": b"450",
    "selects": b"-504 -504 2 2:1,7 1:0",
    "contexts": b"504 499 499 11 504 0",
    "closes_twice": b"11",
    "edges": b"111",
    "owned_values": b"3",
    "closes_under_waiting": b"300",
    "parks_many": b"1000",
    "plain": b"plain",
}
# Stacks of threads are not registered: a larger step of the stack pointer than this one leads there.
OPTIONS = [
    "--max-stackframe=200000",
    "--leak-check=no",
    "--error-limit=no",
    "--num-callers=30",
    "--xml=yes",
]
SLOW_S = 180.0
"""For what takes Python a second: to start, and to free everything."""


@pytest.fixture
def watched(library_path: Path, tmp_path: Path) -> Iterator[Server]:
    """A server of one reactor under memcheck, which writes ``PROCESS.xml``."""
    under = ["valgrind", *OPTIONS, f"--suppressions={Path(__file__).with_name('memcheck.supp')}",
             f"--xml-file={tmp_path}/%p.xml"]  # fmt: skip
    # An allocator that reuses its own memory would hide what is freed.
    environ = {**PLAIN, "PYTHONMALLOC": "malloc", "LIBRARY": str(library_path),
               "HANDLERS": " ".join(HANDLERS)}  # fmt: skip
    arguments = [str(application("memcheck_app")), "--port", "0", "--compiled-threads", "1"]
    server = Server(arguments, environ, tmp_path, under=under).wait_ready(SLOW_S)
    yield server
    server.kill()


def errors(report: Path, library: Path) -> list[str]:
    """What memcheck says of code of this repository: the first function of each error that is not libc's."""
    found = []
    for error in ET.parse(report).iter("error"):
        if error.findtext("kind", "").startswith("Leak_"):
            continue  # a process that ends does not free what it has
        frames = [
            (frame.findtext("fn", "?"), os.path.basename(frame.findtext("obj", "")))
            for frame in error.iterfind("stack[1]/frame")
        ]
        beyond = [one for one in frames if not one[1].startswith(("vgpreload", "libc.", "libc-"))]
        if any(where.startswith("_core.") or where == library.name for _, where in beyond[:1]):
            trace = "\n  ".join(f"{name} ({where})" for name, where in frames)
            found.append(f"{error.findtext('kind')} in\n  {trace}")
    return found


def test_memcheck_finds_nothing(watched: Server, library_path: Path, tmp_path: Path) -> None:
    for _ in range(3):
        for pool in (False, True):
            for name, body in HANDLERS.items():
                assert watched.get(f"/{pool}/{name}?close=1").body == body, name
            assert watched.get(f"/{pool}/asks/41").body == b"42"
    watched.signal(signal.SIGTERM)
    assert watched.wait(SLOW_S) == 0
    reports = list(tmp_path.glob("*.xml"))
    assert reports, "memcheck has written nothing"
    assert [one for report in reports for one in errors(report, library_path)] == []


def test_memcheck_sees_the_stacks_of_goroutines(
    watched: Server, library_path: Path, tmp_path: Path
) -> None:
    """It would find something: a handler that reads what it has not written."""
    assert watched.get("/reads_unwritten").status == 200
    watched.signal(signal.SIGTERM)
    assert watched.wait(SLOW_S) == 0
    (report,) = tmp_path.glob("*.xml")
    assert "reads_unwritten" in "".join(errors(report, library_path))
