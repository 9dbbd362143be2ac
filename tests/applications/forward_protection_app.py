"""What is passed on without Python behind every kind of protection of tests/gateway/test_protection.py."""

# pyright: basic

from __future__ import annotations

import os
import sys
from pathlib import Path

from citius import App, Depends, Request, Router
from citius.errors import HTTPError
from citius.web.middleware import CSRF, TrustedHosts

sys.path.insert(0, str(Path(__file__).parents[1] / "gateway"))
from test_protection import (  # pyright: ignore[reportMissingImports]
    BY_APP,
    BY_ROUTER,
    SECRET,
    around_app,
    guard,
)

UPSTREAM = os.environ["UPSTREAM"]
app = App()
names: list[str] = []


def route_dependency() -> tuple[App, Router]:
    """The declaration itself has it."""
    inner = App()
    inner.forward("/member", UPSTREAM, dependencies=[Depends(guard)])
    return inner, inner


for how in (*BY_APP, *BY_ROUTER, route_dependency):
    inner, to = how()
    if how is not route_dependency:
        to.forward("/member", UPSTREAM)
    app.mount(f"/{how.__name__}", inner)
    names.append(f"/{how.__name__}/member")

around, inner = around_app()
inner.forward("/member", UPSTREAM)
app.mount("/outside", around)
names.append("/outside/around/member")

for name, middleware in (("csrf", CSRF()), ("hosts", TrustedHosts(["example.com"]))):
    inner = App()
    inner.middleware(middleware)
    inner.forward("/member", UPSTREAM)
    app.mount(f"/{name}", inner)
    names.append(f"/{name}/member")

free = App()
free.forward("/member", UPSTREAM)
free.forward("/small", UPSTREAM, body_bytes_max=10)
app.mount("/free", free)

own_errors = App()
own_errors.forward("/member", "http://127.0.0.1:1")


@own_errors.exception_handler(502)
def own_page(request: Request, error: HTTPError) -> str:
    """What stands in place of a gateway's error."""
    return "own page"


app.mount("/errors", own_errors)


@app.get("/names")
def listed() -> dict[str, object]:
    """The paths, and what no one may see."""
    return {"names": names, "secret": SECRET}
