"""The adapter for Ray of docs/guides/heavy-work.md, on a Ray of this machine; `make test-ray` installs it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="ray is not installed; make test-ray")

import httpx
import servers
from guide import program
from rig import application, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_calls_references_errors_and_cancellation(tmp_path: Path) -> None:
    (tmp_path / "on_ray.py").write_text(program("heavy-work.md", "on_ray.py"))
    folders = [str(tmp_path), str(application("ray_app").parent), os.environ.get("PYTHONPATH", "")]
    paths = os.pathsep.join(folders)
    server = servers.citius("ray_app:app", tmp_path, "--workers", "1", PYTHONPATH=paths)
    path = tmp_path / "held"
    try:
        with httpx.Client(base_url=server.url, timeout=60) as client:
            # The table goes by reference, and is there as a value.
            assert client.get("/sums/1").text == str(sum(row * row for row in range(1000)))
            assert client.get("/sums/x").status_code in (404, 422)
            assert client.get("/fail").status_code == 500
            server.wait_for_log("what-was-wrong")
            with pytest.raises(httpx.ReadTimeout):
                client.get("/hold", params={"path": str(path)}, timeout=5)
        assert path.exists()
        wait_for(Path(f"{path}.cancelled").exists, "the body to be cancelled: its client has left")
        with httpx.Client(base_url=server.url, timeout=60) as client:
            wait_for(lambda: client.get("/sums/0").status_code == 200, "a call after it")
    finally:
        server.stop()
        server.kill()
