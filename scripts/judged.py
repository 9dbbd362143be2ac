"""`citius serve` for suites that judge it from outside."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

END_S = 20


@contextmanager
def served(target: str | Path, directory: str | Path, *options: str) -> Generator[str]:
    """Serve an application while the block runs; gives the port.

    Raises:
        SystemExit: The server ended before it served.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", target, "--port", "0", "--no-access-log", *options],
        cwd=directory, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"serves on https?://\S+:(\d+)", line):
                yield found[1]
                return
        raise SystemExit(f"{sys.argv[0]}: the server ended with {process.wait()}")
    finally:
        process.terminate()
        process.wait(END_S)
