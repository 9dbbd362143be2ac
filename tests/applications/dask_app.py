"""Handlers whose bodies run on the Dask cluster at SCHEDULER."""

# pyright: basic

import os
from typing import Any

import executor_bodies as bodies
from citius import App
from distributed import Client

app = App()
app.executor("dask", lambda: Client(os.environ["SCHEDULER"]).get_executor(), deadline_s=20)
kept = []


def of_kept_client():
    """As in the guide: the client is the application's, and the executor is asked of it again."""
    kept.extend([] if kept else [Client(os.environ["SCHEDULER"], set_as_default=False)])
    return kept[0].get_executor()


app.executor("kept", of_kept_client, deadline_s=20)
app.get("/kept/where/{n:int}", executor="kept")(bodies.where)


@app.get("/leave/{name}", blocking=True)
def leave(name: str) -> None:
    """As a client does that has given up on its scheduler."""
    executor: Any = app._executors[name]._executor
    executor._client.close()


app.get("/dask/where/{n:int}", executor="dask")(bodies.where)
app.get("/dask/fail", executor="dask")(bodies.fail)
app.get("/dask/steps", executor="dask")(bodies.steps)
app.get("/pid")(os.getpid)
