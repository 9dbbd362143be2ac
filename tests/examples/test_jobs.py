"""The example of jobs that outlive their request, on a real Dask cluster."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from dask_rig import dask_cluster
from rig import Server, wait_for

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
EXAMPLE = Path(__file__).parents[2] / "examples/jobs"


def test_a_job_outlives_its_server(serve: Callable[..., Server], tmp_path: Path) -> None:
    with dask_cluster(tmp_path, EXAMPLE) as address:
        env = {"SCHEDULER": address, "PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
        first = serve(EXAMPLE / "app.py", env=env)
        with first.connect() as peer:
            begun = peer.request("POST", "/jobs?below=1000")
            assert begun.status == 202
            where = begun.headers["location"]
            assert where == f"/jobs/{json.loads(begun.body)['job']}"
        second = serve(EXAMPLE / "app.py", env=env)
        first.stop()
        wait_for(lambda: second.get(where).status == 303, "the result")
        assert second.get(where).headers["location"] == f"{where}/result"
        assert second.get(f"{where}/result").body == b"168"
        with second.connect() as peer:
            assert peer.request("DELETE", where).status in (200, 204)
        assert second.get(where).status == 404
        assert second.get("/jobs/unknown").status == 404
        second.stop()


def test_a_job_whose_worker_is_killed_begins_again(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    with dask_cluster(tmp_path, EXAMPLE) as address:
        env = {"SCHEDULER": address, "PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
        server = serve(EXAMPLE / "app.py", env=env)
        with server.connect() as peer:
            where = peer.request("POST", "/jobs?below=200000").headers["location"]
        with distributed.Client(address) as client:

            def busy() -> list[str]:
                return [worker for worker, tasks in client.processing().items() if tasks]

            wait_for(busy, "the job to begin")
            os.kill(client.run(os.getpid)[busy()[0]], signal.SIGKILL)
        wait_for(lambda: server.get(where).status == 303, "the result of the other worker")
        assert server.get(f"{where}/result").body == b"17984"
        server.stop()
