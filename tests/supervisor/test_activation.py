"""Socket units beside `--bind`: the passed sockets are used (servers D9)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rig import TIMEOUT_S

APP = """
from citius import *
app = App()
@app.get("/")
def root(request: Request) -> str:
    return "passed"
"""


def _listener(kind: str, directory: Path) -> tuple[socket.socket, str]:
    if kind == "unix":
        made = socket.socket(socket.AF_UNIX)
        made.bind(str(directory / "s"))
        made.listen()
        return made, f"unix:{directory}/s"
    made = socket.create_server(("127.0.0.1", 0))
    return made, f"127.0.0.1:{made.getsockname()[1]}"


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("kind", ["unix", "tcp"])
@pytest.mark.parametrize("bind", ["same", "other", "none"])
def test_the_passed_socket_is_used(tmp_path: Path, kind: str, bind: str, workers: str) -> None:
    (tmp_path / "main.py").write_text(APP)
    listener, address = _listener(kind, tmp_path)
    with listener:
        other = {"same": address, "other": "127.0.0.1:1", "none": ""}[bind]
        arguments = ["serve", "main.py", "-w", workers, *(["--bind", other] if other else [])]
        # Descriptor 3 and the process id are what they are only after the fork.
        program = (
            f"import os, sys; os.dup2({listener.fileno()}, 3); "
            "os.environ['LISTEN_PID'] = str(os.getpid()); "
            f"os.execv(sys.executable, [sys.executable, '-m', 'citius', *{arguments!r}])"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=tmp_path, pass_fds=[listener.fileno()],
            env={**os.environ, "LISTEN_FDS": "1"}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            with socket.socket(listener.family) as peer:
                peer.settimeout(TIMEOUT_S)
                peer.connect(listener.getsockname())
                peer.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                assert peer.recv(100).startswith(b"HTTP/1.1 200")
        finally:
            process.terminate()
            _, err = process.communicate(timeout=TIMEOUT_S)
        assert process.returncode == 0, err
        assert (b"127.0.0.1:1: not listened on" in err) == (bind == "other")
