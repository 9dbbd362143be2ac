"""Handlers whose bodies run on a Dask cluster: values, errors, progress, cancellation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask_rig import dask_cluster
from guide import program
from rig import Server, application, wait_for

pytest.importorskip("distributed", reason="dask.distributed is not installed")
APPLICATIONS = Path(__file__).parents[1] / "applications"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[str]:
    with dask_cluster(tmp_path, APPLICATIONS) as address:
        yield address


def test_a_dask_cluster_is_an_executor(serve, scheduler: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    server: Server = serve(
        application("dask_app"),
        env={"SCHEDULER": scheduler, "PYTHONDEVMODE": "", "PYTHONWARNINGS": ""},
    )
    found = json.loads(server.get("/dask/where/7").body)
    assert found["n"] == 7
    assert found["pid"] != int(server.get("/pid").body)
    assert server.get("/dask/fail?text=what-was-wrong").status == 500
    wait_for(lambda: "raise KeyError(text)" in server.err, "the traceback of the other side")
    path = tmp_path / "go"
    ask = f"GET /dask/steps?path={path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"
    with server.connect() as peer:
        peer.send(ask.encode())
        peer.read_until(b"event: progress\n")
    wait_for((tmp_path / "go.cancelled").exists, "the body to be told")
    with server.connect() as peer:
        peer.send(ask.encode())
        peer.read_until(b"event: progress\n")
        path.touch()
        assert peer.read_until(b"event: result\ndata: done\n\n")


@pytest.mark.parametrize("name", ["dask", "kept"])
def test_an_executor_comes_back_whose_client_has_given_up(  # type: ignore[no-untyped-def]
    serve, scheduler: str, name: str
) -> None:
    """Scale S12: every call was a 500 from then on."""
    env = {"SCHEDULER": scheduler, "PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
    server: Server = serve(application("dask_app"), "--health", "/-", env=env)
    assert server.get(f"/{name}/where/7").status == 200
    assert server.get(f"/leave/{name}").status in (200, 204)
    statuses: list[int] = []
    wait_for(
        lambda: statuses.append(server.get(f"/{name}/where/7").status) or statuses[-1] == 200,
        "the executor",
    )
    assert set(statuses) <= {200, 503}
    wait_for(lambda: server.get("/-/ready").status == 200, "readiness")


def test_the_program_of_the_guide_passes_a_table_by_reference(  # type: ignore[no-untyped-def]
    serve, tmp_path: Path
) -> None:
    (tmp_path / "on_dask.py").write_text(program("heavy-work.md", "on_dask.py"))
    with dask_cluster(tmp_path, tmp_path) as address:
        env = {"SCHEDULER": address, "PYTHONDEVMODE": "", "PYTHONWARNINGS": ""}
        server: Server = serve(tmp_path / "on_dask.py", env=env)
        assert server.get("/sums/1").body == b"332833500"
        server.stop()
