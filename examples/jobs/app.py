"""Jobs that outlive their request: a Dask scheduler (SCHEDULER) keeps, retries and remembers them.

`POST /jobs` responds 202 with `Location`: the status, and 303 to the result when it is done. Any node
of the service responds for any job, also one that has begun later: the jobs are the scheduler's.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

from citius import App, NotFound, Response, json_response
from distributed import Client, wait


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[None]:
    async with Client(os.environ["SCHEDULER"], asynchronous=True) as client:
        app.state.queue = client
        yield


app = App(lifespan=connected)


def count_primes(below: int) -> int:
    """The work; it runs on a worker of the queue."""
    time.sleep(0.2)
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(2, below))


@app.post("/jobs")
async def begin(below: int) -> Response:
    job = uuid.uuid4().hex
    # By its key the same job is not begun twice; it is tried again if its worker is lost, or it fails.
    future = app.state.queue.submit(count_primes, below, key=f"job-{job}", retries=2, pure=False)
    # The scheduler keeps what has a name, for longer than this process lives.
    await app.state.queue.publish_dataset(future, name=job)
    return json_response({"job": job}, 202, {"location": f"/jobs/{job}"})


@app.get("/jobs/{job}")
async def status(job: str) -> Response:
    future = await future_of(job)
    with suppress(TimeoutError):
        await wait(future, timeout=0.5)  # what this process knows of it comes from the scheduler
    if future.status == "finished":
        return Response(b"", 303, {"location": f"/jobs/{job}/result"})
    if future.status == "error":
        return json_response({"status": "failed", "reason": repr(await future.exception())})
    return json_response({"status": "pending"}, headers={"retry-after": "1"})


@app.get("/jobs/{job}/result")
async def result(job: str) -> int:
    future = await future_of(job)
    try:
        return await future.result(timeout=0.5)
    except TimeoutError:
        raise NotFound("the job is not done") from None


@app.delete("/jobs/{job}")
async def forget(job: str) -> None:
    future = await future_of(job)
    await future.cancel()
    await app.state.queue.unpublish_dataset(job)


async def future_of(job: str) -> Any:
    future = await app.state.queue.get_dataset(job, default=None)
    if future is None:
        raise NotFound("there is no such job")
    return future
