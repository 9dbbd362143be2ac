"""What a process may do in its container."""

# pyright: basic

import os
from pathlib import Path

from citius import App

app = App()


@app.get("/")
def confinement():
    lines = Path("/proc/self/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return {
        "uid": os.getuid(),
        "caps": status["CapEff"].strip() + status["CapBnd"].strip(),
        "no_new_privs": status["NoNewPrivs"].strip(),
        "parent": os.getppid(),
    }


@app.get("/write/{path:path}")
def write(path: str):
    try:
        Path("/", path).write_text("")
    except OSError as error:
        return type(error).__name__
    return "written"
