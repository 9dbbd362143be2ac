"""Handlers whose bodies run on the Dask cluster at SCHEDULER."""

# pyright: basic

import os

import executors_app
from citius import App
from distributed import Client

app = App()
app.executor("dask", lambda: Client(os.environ["SCHEDULER"]).get_executor(), deadline_s=20)
app.get("/dask/where/{n:int}", executor="dask")(executors_app.where)
app.get("/dask/fail", executor="dask")(executors_app.fail)
app.get("/dask/steps", executor="dask")(executors_app.steps)
app.get("/pid")(executors_app.pid)
