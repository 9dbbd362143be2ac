"""Handlers whose bodies run on Ray by the adapter of docs/guides/heavy-work.md; `make test-ray` has a Ray."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from guide import program
from rig import Server, wait_for

pytest.importorskip("ray", reason="ray is not installed: make test-ray")

# The program of the guide, and routes that show what befalls a call.
MORE = """
import os
import time
from pathlib import Path

from on_ray import app


def pid() -> int:
    return os.getpid()


def fail(text: str) -> None:
    raise KeyError(text)


def hold(path: str) -> None:
    Path(path).touch()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:  # so Ray cancels
        Path(path + ".cancelled").touch()
        raise


for body in (pid, fail, hold):
    app.get("/" + body.__name__, executor="ray")(body)
app.get("/own-pid")(os.getpid)
"""


def test_a_ray_cluster_is_an_executor(serve: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "on_ray.py").write_text(program("heavy-work.md", "on_ray.py"))
    (tmp_path / "more.py").write_text(MORE)
    env = {
        "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "PYTHONDEVMODE": "",
        "PYTHONWARNINGS": "", "PYTHONPATH": str(tmp_path),
    }  # fmt: skip
    server = serve(tmp_path / "more.py", "--workers", "1", env=env, ready=False)
    wait_for(lambda: "serves on" in server.err, "Ray to start", 90)
    server.wait_ready()
    # The table goes by reference; the body has the rows themselves.
    assert server.get("/sums/1").body == b"332833500"
    assert json.loads(server.get("/pid").body) != json.loads(server.get("/own-pid").body)
    assert server.get("/fail?text=what-was-wrong").status == 500
    wait_for(lambda: "raise KeyError(text)" in server.err, "the traceback of the other side")
    path = tmp_path / "held"
    with server.connect() as peer:
        peer.send(f"GET /hold?path={path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        wait_for(path.exists, "the body to begin")
    wait_for(Path(f"{path}.cancelled").exists, "the body to be cancelled")
    # Its worker takes the next call.
    assert server.get("/sums/0").body == b"499500"
    server.stop()
