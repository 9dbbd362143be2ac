"""Calls a compiled handler, and says of what kinds the files in a directory are."""

# pyright: basic

import pathlib
import sys

from citius import App
from citius.testing import Client

FACTOR = 5

app = App()


@app.get("/", compiled=True)
def handler(n: int):
    return n * FACTOR


if __name__ == "__main__":
    client = Client(app)
    print(client.get("/?n=3").text)
    files = [path for path in pathlib.Path(sys.argv[1]).rglob("*") if path.is_file()]
    print(sorted(path.suffix for path in files))
