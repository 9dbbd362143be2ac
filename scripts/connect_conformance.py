"""Runs Connect's conformance suite (Connect, gRPC and gRPC-Web) against `citius serve`.

connect_conformance.py TOOLS [fast]: a directory with `connectconformance`, the environment of
requirements/connect.lock and what `buf` has made there. The clients of the suite speak HTTP/1.1 and HTTP/2,
clear and over TLS, and HTTP/3, with certificates of clients and without. `fast` leaves out what is not gRPC
of WSGI.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent / "connect"

WAYS = {
    "asgi": ["service:asgi"],
    "native": ["service:native"],
    # Each stream in both directions has a thread for its time.
    "wsgi": ["service:wsgi", "--interface", "wsgi", "--threads", "64"],
}
"""What is served, and options of the server."""


FAST = {"asgi": [], "native": [], "wsgi": ["--run", "**/Protocol:PROTOCOL_GRPC/**"]}
"""Options of the suite."""

RACES = "Timeouts/**/Protocol:PROTOCOL_CONNECT/**/unary"
"""Cases whose verdict hangs on the suite's own timing: its client ends at the deadline that it has sent. When
the response comes just then, it can stop between head and body, and the suite parses an empty error document.
What a client that waits is sent, tests/rpc/test_rpc_paths.py checks."""


def judge(tools: Path, way: str, chosen: list[str]) -> int:
    """Runs the cases; exit code 0: all of them pass."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (HERE, tools)))}
    python = tools / "environment/bin/python"
    began = time.monotonic()
    done = subprocess.run(
        [tools / "connectconformance", "--conf", HERE / "suite.yaml", "--mode", "server",
         "--known-flaky", RACES, *chosen, "--",
         python, HERE / "server.py", *WAYS[way]],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    summary = re.search(r"Total cases.*(?:\n.*)*", done.stdout)
    print(f"{way}: {time.monotonic() - began:.0f} s; {summary[0] if summary else done.stdout}")
    if done.returncode:
        print("\n".join(re.findall(r"^FAILED: .*(?:\n\t.*)*", done.stdout, re.MULTILINE)[:100]))
    return done.returncode


def main() -> int:
    """Exit code 0: all cases pass."""
    tools, *fast = sys.argv[1:]
    return max(judge(Path(tools).absolute(), way, FAST[way] if fast else []) for way in WAYS)


if __name__ == "__main__":
    sys.exit(main())
