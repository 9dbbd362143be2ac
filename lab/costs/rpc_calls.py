"""What an echo by RPC costs: CPU time of the server, one HTTP/2 connection with 64 streams (needs h2load).

rpc_calls.py TOOLS [GRPC_GO]: the directory that `make .tools/connect/ready` has made, and a server that is
built of lab/contestants/grpc-go. The service is that of the lab (`rpc_connectrpc.py`), mounted and as an ASGI
application, and by a handler that frames messages itself. Servers take turns; least and median of the rounds.
"""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT / "lab/contestants/shared/python"
CALLS, ROUNDS = 30_000, 5
SERVERS = {
    "mounted": ["rpc_mounted:app"],
    "as ASGI": ["rpc_connectrpc:app", "--lifespan", "off"],
    "framed by hand": [str(ROOT / "lab/contestants/grpc-citius-native/app.py:app")],
}
GRPC = b"\0\0\0\0\x0d\n\x0bhello world"
KINDS = {
    "Connect, JSON": ("application/json", b'"hello world"', []),
    "Connect, proto": ("application/proto", b"\n\x0bhello world", []),
    "gRPC": ("application/grpc", GRPC, ["-H", "te: trailers"]),
    "gRPC with a deadline": (
        "application/grpc", GRPC, ["-H", "te: trailers", "-H", "grpc-timeout: 5S"],
    ),
}  # fmt: skip


class Contestant:
    """A server, and what its processes have used."""

    def __init__(self, command: list[str], port: int | None, env: dict[str, str]) -> None:
        told = subprocess.PIPE if port is None else subprocess.DEVNULL
        self.process = subprocess.Popen(command, stderr=told, text=True, env=env, cwd=SHARED)
        self.port = port or self._port()
        while socket.socket().connect_ex(("127.0.0.1", self.port)):
            time.sleep(0.05)

    def _port(self) -> int:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if found := re.search(r"serves on https?://\S+:(\d+)", line):
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return int(found[1])
        raise SystemExit(f"the server ended with {self.process.wait()}")

    def cpu_s(self) -> float:
        """CPU time of the server, which is one process."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def called(self, kind: str, directory: str, calls: int = CALLS) -> float:
        """Microseconds a call."""
        media_type, body, fields = KINDS[kind]
        data = Path(directory, "body")
        data.write_bytes(body)
        before = self.cpu_s()
        done = subprocess.run(
            ["h2load", "-n", str(calls), "-c", "1", "-m", "64", "-d", data, *fields,
             "-H", f"content-type: {media_type}", f"http://127.0.0.1:{self.port}/lab.Echo/Unary"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        if f"status codes: {calls} 2xx" not in done.stdout:
            raise SystemExit(done.stdout)
        return (self.cpu_s() - before) / calls * 1e6


def main() -> None:
    """A table in Markdown."""
    tools, *go = sys.argv[1:]
    python = str(Path(tools).absolute() / "environment/bin/python")
    env = {**os.environ, "PYTHONPATH": str(SHARED)}
    contestants = {
        name: Contestant(
            [python, "-m", "citius", "serve", *target, "--port", "0", "--no-access-log"], None, env
        )
        for name, target in SERVERS.items()
    }
    if go:
        with socket.create_server(("127.0.0.1", 0)) as made:
            port = made.getsockname()[1]
        contestants["grpc-go"] = Contestant([go[0], "-port", str(port), "-workers", "1"], port, env)
    try:
        with tempfile.TemporaryDirectory() as directory:
            print("| |", " | ".join(contestants), "|\n|---|" + "---|" * len(contestants))
            for kind in KINDS:
                fitting = {
                    name: one for name, one in contestants.items()
                    if name != "grpc-go" or kind.startswith("gRPC")
                }  # fmt: skip
                found: dict[str, list[float]] = {name: [] for name in contestants}
                for one in fitting.values():
                    one.called(kind, directory, CALLS // 10)
                for _ in range(ROUNDS):
                    for name, one in fitting.items():
                        found[name].append(one.called(kind, directory))
                cells = [
                    f"{min(each):.1f} ({statistics.median(each):.1f})" if each else ""
                    for each in found.values()
                ]
                print(f"| {kind} |", " | ".join(cells), "|", flush=True)
    finally:
        for one in contestants.values():
            one.process.terminate()
        for one in contestants.values():
            one.process.wait()


if __name__ == "__main__":
    main()
