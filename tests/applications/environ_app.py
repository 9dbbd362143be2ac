"""Answers with what the environment has."""

import os

from citius import App, Request

app = App()


@app.get("/{name}")
def variable(request: Request, name: str) -> str:
    return os.environ.get(name, "none")
