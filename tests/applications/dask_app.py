"""Handlers whose bodies run on the Dask cluster at SCHEDULER."""

# pyright: basic

import os

import executor_bodies as bodies
from citius import App
from distributed import Client

app = App()
app.executor("dask", lambda: Client(os.environ["SCHEDULER"]).get_executor(), deadline_s=20)
app.get("/dask/where/{n:int}", executor="dask")(bodies.where)
app.get("/dask/fail", executor="dask")(bodies.fail)
app.get("/dask/steps", executor="dask")(bodies.steps)
app.get("/pid")(os.getpid)
