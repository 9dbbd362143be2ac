"""The adapter for Ray of docs/guides/heavy-work.md, on a Ray of this machine; `make test-ray` installs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed; make test-ray")

import httpx
import servers
from guide import program
from rig import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Goes on with the program of the page.
MORE = """

import time
from pathlib import Path


def fail() -> None:
    raise KeyError("what-was-wrong")


def wait_for_file(path: str) -> str:
    Path(path + ".begun").touch()
    while not Path(path).exists():
        time.sleep(0.02)
    Path(path + ".ended").touch()
    return "there"


app.get("/fail", executor="ray")(fail)
app.get("/wait", executor="ray")(wait_for_file)
"""


def test_calls_references_errors_and_cancellation(tmp_path: Path) -> None:
    (tmp_path / "on_ray.py").write_text(program("heavy-work.md", "on_ray.py") + MORE)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    server = servers.citius("on_ray:app", tmp_path, "--workers", "1", PYTHONPATH=paths)
    path = tmp_path / "go"
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            # The table goes by reference, and is there as a value.
            assert client.get("/sums/1").text == str(sum(row * row for row in range(1000)))
            assert client.get("/sums/x").status_code in (404, 422)
            assert client.get("/fail").status_code == 500
            server.wait_for_log("what-was-wrong")
            with pytest.raises(httpx.ReadTimeout):
                client.get("/wait", params={"path": str(path)}, timeout=5)
        # Its client has left: Ray interrupts it before the file is there.
        assert Path(f"{path}.begun").exists()
        path.touch()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            wait_for(lambda: client.get("/sums/0").status_code == 200, "a call after it")
        assert not Path(f"{path}.ended").exists()
    finally:
        server.stop()
        server.kill()
