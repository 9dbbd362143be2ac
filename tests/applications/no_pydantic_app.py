"""Asks an application without types of pydantic, and says whether pydantic was imported for that."""

# pyright: basic

import sys

from citius import App
from citius.testing import Client

app = App()


@app.post("/")
def post(value: dict[str, int], n: int = 1) -> dict[str, int]:
    return value


if __name__ == "__main__":
    with Client(app) as client:
        assert client.post("/", json={"a": 1}).json() == {"a": 1}
        assert client.post("/", json={"a": "x"}).status_code == 422
    app.openapi()
    print("pydantic" in sys.modules, "pydantic_core" in sys.modules)
