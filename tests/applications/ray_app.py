"""The program on_ray.py of docs/guides/heavy-work.md, and routes that show what befalls a call."""

# pyright: basic

import time
from pathlib import Path

from on_ray import app  # pyright: ignore[reportMissingImports]


def fail() -> None:
    raise KeyError("what-was-wrong")


def hold(path: str) -> None:
    Path(path).touch()
    try:
        while True:
            time.sleep(0.01)
    except KeyboardInterrupt:  # so Ray cancels
        Path(path + ".cancelled").touch()
        raise


app.get("/fail", executor="ray")(fail)
app.get("/hold", executor="ray")(hold)
