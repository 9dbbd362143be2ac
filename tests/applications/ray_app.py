"""The program on_ray.py of docs/guides/heavy-work.md, and routes that show what befalls a call."""

# pyright: basic

import time
from pathlib import Path

from on_ray import app  # pyright: ignore[reportMissingImports]


def fail() -> None:
    raise KeyError("what-was-wrong")


def wait_for_file(path: str) -> str:
    Path(path + ".begun").touch()
    while not Path(path).exists():
        time.sleep(0.02)
    Path(path + ".ended").touch()
    return "there"


app.get("/fail", executor="ray")(fail)
app.get("/wait", executor="ray")(wait_for_file)
