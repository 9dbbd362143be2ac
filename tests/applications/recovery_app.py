"""Executors of which their bodies break something."""

# pyright: basic

import json
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import executor_bodies as bodies
from citius import App, Request

app = App()
app.executor("processes", processes=2, deadline_s=20)
app.executor("one", processes=1, calls_max=4, deadline_s=float(os.environ.get("DEADLINE_S", "20")))
# A new process has to be there within the deadline, on a busy machine too.
app.executor("hasty", processes=2, deadline_s=2)
app.executor("threads", threads=2, calls_max=4, deadline_s=20)
app.executor("stuck", threads=2, calls_max=4, deadline_s=1)
names = ["processes", "one", "hasty", "threads", "stuck"]
if sys.version_info >= (3, 14):
    app.executor("interpreters", interpreters=2, calls_max=4, deadline_s=2)
    names.append("interpreters")
    app.get("/interpreters/close", executor="interpreters")(bodies.close_interpreters)
    app.get("/interpreters/meet", executor="interpreters")(bodies.meet)
if "STANDARD" in os.environ:
    pool = ProcessPoolExecutor(2)
    app.executor("made", lambda: ProcessPoolExecutor(2))
    app.executor("given", pool)
    names += ["made", "given"]
for name in names:
    app.get(f"/{name}/where/{{n:int}}", executor=name)(bodies.where)
    app.get(f"/{name}/crash/{{how}}", executor=name)(bodies.crash)
    app.get(f"/{name}/loop", executor=name)(bodies.loop)
    app.get(f"/{name}/hold", executor=name)(bodies.hold)
    app.get(f"/{name}/fork/{{n:int}}", executor=name)(bodies.fork)
    app.get(f"/{name}/fork-and-hold", executor=name)(bodies.fork_and_hold)
    app.get(f"/{name}/fork-unseen-and-hold", executor=name)(bodies.fork_unseen_and_hold)


@app.get("/forker/{name}")
def forker(name: str) -> int:
    """The process that forks those of an executor."""
    executor: Any = app._executors[name]._executor
    return executor._forker.pid


@app.get("/waiting/{name}")
def waiting(name: str) -> int:
    """How many calls of an executor are yet to begin."""
    executor: Any = app._executors[name]._executor
    return sum(not call.future.cancelled() for call in executor._calls)


@app.get("/threads")
def threads() -> list:
    return [thread.name for thread in threading.enumerate()]


def calls(text: str) -> list:
    from syscall_bodies import make_calls

    return make_calls(json.loads(text))


@app.post("/calls")
async def run_calls(request: Request) -> list:
    """System calls of a process of an executor."""
    import asyncio

    executor: Any = app._executors["processes"]._executor
    return await asyncio.wrap_future(executor.submit(calls, request.body().decode()))


@app.get("/size/{name}")
def size(name: str) -> int:
    """How many calls an executor of sub-interpreters may run at once."""
    executor: Any = app._executors[name]._executor
    return executor._max_workers
