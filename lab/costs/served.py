"""One worker of Citius with a small application, for programs of this folder."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from citius_lab.processes import launch

if TYPE_CHECKING:
    from collections.abc import Generator

START_S = 20.0


@contextmanager
def served(folder: Path, source: str, *words: str) -> Generator[tuple[int, int]]:
    """Serve the application in ``source`` with these options: the port, and the process.

    Raises:
        SystemExit: It does not start.
    """
    port = launch.free_port()
    (folder / "served.py").write_text(source)
    command = [
        sys.executable, "-m", "citius", "serve", "served.py:app", "--no-access-log", "--port", str(port),
        *words,
    ]  # fmt: skip
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    try:
        if not launch.accepts(port, START_S):
            sys.exit("the server does not start")
        yield port, server.pid
    finally:
        server.terminate()
        server.wait()
