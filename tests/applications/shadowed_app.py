"""Routes that static files stand in front of."""

# pyright: basic

import os

from citius import App

app = App()


@app.get("/assets/{rest:path}")
def shadowed(rest):
    return "from the application"


@app.get("/app")
def answer():
    return "from the application"


@app.get("/descriptors")
def descriptors():
    return len(os.listdir("/proc/self/fd"))
