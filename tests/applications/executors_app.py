"""Handlers whose bodies run on executors of this machine."""

# pyright: basic

import sys

from citius import App
from executor_bodies import add_routes

app = App()
app.executor("threads", threads=2, calls_max=4, deadline_s=20)
app.executor("processes", processes=2, calls_max=4, deadline_s=20)
app.executor("hasty", processes=1, deadline_s=2)
names = ["threads", "processes", "hasty"]
if sys.version_info >= (3, 14):
    app.executor("interpreters", interpreters=2, calls_max=4, deadline_s=20)
    names.append("interpreters")
add_routes(app, *names)
