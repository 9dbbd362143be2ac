"""The programs of docs/guides/heavy-work.md, served, with their queues' real workers on a real Redis."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
import servers
from citius.redis import Redis as NativeRedis
from engines_rig import Engine, Redis
from guide import program
from rig import wait_for
from servers import Running

WORKERS = {
    "arq": ["arq", "on_arq.WorkerSettings"],
    "celery": [
        "celery",
        "-A",
        "on_celery.queue",
        "worker",
        "--concurrency",
        "2",
        "--loglevel",
        "info",
    ],
    "taskiq": ["taskiq", "worker", "on_taskiq:broker", "--workers", "1"],
}
READY = {"arq": "Starting worker", "celery": " ready.", "taskiq": "Listening started"}

if shutil.which("redis-server") is None:
    pytest.skip("redis-server is not installed", allow_module_level=True)


class TcpRedis(Redis):
    """A Redis on a port: not every queue speaks to a socket of Unix."""

    def __init__(self, directory: Path) -> None:
        import socket

        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        super().__init__(
            directory, "--port", str(self.port), url=f"redis://127.0.0.1:{self.port}/0"
        )


class Worker(Engine):
    """A queue's worker."""

    def __init__(self, kind: str, directory: Path, url: str) -> None:
        self.kind, self.url = kind, url
        super().__init__(directory)

    def command(self) -> list[str]:
        return [sys.executable, "-m", *WORKERS[self.kind]]

    def start(self) -> None:
        # Its log is a file: what a worker prints is waited for in it.
        env = {
            **os.environ,
            "QUEUE": self.url,
            "PYTHONPATH": str(self.directory),
            "PYTHONUNBUFFERED": "1",
        }
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=env,
                start_new_session=True,
            )
        wait_for(
            self.responds, f"the worker of {self.kind}: {(self.directory / 'log').read_text()}"
        )

    def responds(self) -> bool:
        said = (self.directory / "log").read_text()
        assert self.process.poll() is None, said
        return READY[self.kind] in said

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(3)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, 9)
                self.process.wait(10)


@pytest.fixture(params=sorted(WORKERS))
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    made = TcpRedis(tmp_path / "redis")
    yield made
    made.close()


@pytest.fixture
def service(kind: str, redis: Redis, tmp_path: Path) -> Iterator[Running]:
    (tmp_path / f"on_{kind}.py").write_text(program("heavy-work.md", f"on_{kind}.py"))
    made = servers.citius(f"on_{kind}:app", tmp_path, QUEUE=redis.url, PYTHONPATH=str(tmp_path))
    yield made
    made.kill()


def status(client: httpx.Client, where: str) -> dict[str, str]:
    reply = client.get(where)
    return {"status": "done"} if reply.status_code == 303 else reply.json()


@contextmanager
def told_on_timeout(worker: Worker, redis: Redis) -> Iterator[None]:
    """What the queue and its worker know of a call without a response: whose mistake it is."""
    try:
        yield
    except httpx.TimeoutException:
        log = (worker.directory / "log").read_text()
        with NativeRedis(redis.url).sync as found:
            known = {key: found.type(key) for key in found.keys("*")}
            lengths = [found.execute("LLEN", "celery"), found.execute("HLEN", "unacked")]
            states = [found.get(key) for key in known if b"task-meta" in key]
        raise AssertionError(f"{known}\n{lengths}\n{states}\n{log}") from None


def test_jobs_and_calls(kind: str, service: Running, redis: Redis, tmp_path: Path) -> None:
    with httpx.Client(base_url=service.url, timeout=30) as client:
        assert client.post("/jobs", params={"below": "many"}).status_code == 422
        begun = client.post("/jobs", params={"below": 1000})
        assert begun.status_code == 202, begun.text + service.log
        where = begun.headers["location"]
        assert where == f"/jobs/{begun.json()['job']}"
        # No worker is there yet: the job waits in the queue.
        waiting = client.get(where)
        assert (waiting.status_code, waiting.headers["retry-after"]) == (200, "1")
        assert client.get(f"{where}/result").status_code == 404
    service.kill()
    # The service that began it is gone; another one tells of it.
    worker = Worker(kind, tmp_path, redis.url)
    other = servers.citius(f"on_{kind}:app", tmp_path, QUEUE=redis.url, PYTHONPATH=str(tmp_path))
    try:
        with httpx.Client(base_url=other.url, timeout=30) as client:
            wait_for(lambda: status(client, where) == {"status": "done"}, "the result")
            assert client.get(where).headers["location"] == f"{where}/result"
            assert client.get(f"{where}/result").text == "168"
            # Handlers that wait for the queue.
            with ThreadPoolExecutor(20) as pool, told_on_timeout(worker, redis):
                replies = list(pool.map(client.get, ["/primes/1000"] * 40))
            assert {one.text for one in replies} == {"168"}, other.log
    finally:
        other.kill()
        worker.close()


def test_a_task_ends_when_the_client_of_its_call_has_left(redis: Redis, tmp_path: Path) -> None:
    """Celery ends it; the worker has two processes, which are free for the next calls."""
    if find_spec("celery") is None:
        pytest.skip("celery is not installed")
    (tmp_path / "on_celery.py").write_text(program("heavy-work.md", "on_celery.py"))
    worker = Worker("celery", tmp_path, redis.url)
    service = servers.citius("on_celery:app", tmp_path, QUEUE=redis.url, PYTHONPATH=str(tmp_path))
    try:
        with httpx.Client(base_url=service.url, timeout=30) as client:
            for _ in range(2):
                with pytest.raises(httpx.ReadTimeout):
                    client.get("/primes/50000000", timeout=2)
            reply = client.get("/primes/1000")
            assert (reply.status_code, reply.text) == (200, "168"), service.log
    finally:
        service.kill()
        worker.close()


def test_a_job_that_is_cancelled_does_not_run(
    kind: str, service: Running, redis: Redis, tmp_path: Path
) -> None:
    if kind == "taskiq":
        pytest.skip("taskiq does not cancel")
    worker = Worker(kind, tmp_path, redis.url)
    try:
        with httpx.Client(base_url=service.url, timeout=30) as client:
            where = client.post("/jobs", params={"below": 20_000_000}).headers["location"]
            wait_for(
                lambda: status(client, where)["status"] in ("in_progress", "started"), "its begin"
            )
            assert client.delete(where).status_code in (200, 204)
            wait_for(lambda: status(client, where)["status"] == "failed", "its end")
    finally:
        worker.close()
        if worker.process.poll() is None:
            worker.process.kill()
