"""A session behind every kind of protection of tests/gateway/test_protection.py, each below its name."""

# pyright: basic

from __future__ import annotations

import sys
from pathlib import Path

from citius import App, WebTransportSession
from citius.web.middleware import CSRF, TrustedHosts

sys.path.insert(0, str(Path(__file__).parents[1] / "gateway"))
from test_protection import BY_APP, BY_ROUTER, around_app  # pyright: ignore[reportMissingImports]

app = App()
names: list[str] = []


async def member(session: WebTransportSession) -> None:
    """What is protected."""
    await session.accept()
    await session.close(0, "SECRET")


for how in (*BY_APP, *BY_ROUTER):
    inner, to = how()
    to.webtransport("/member")(member)
    app.mount(f"/{how.__name__}", inner)
    names.append(f"/{how.__name__}/member")

around, inner = around_app()
inner.webtransport("/member")(member)
app.mount("/outside", around)
names.append("/outside/around/member")

for name, middleware in (("csrf", CSRF()), ("hosts", TrustedHosts(["example.com"]))):
    inner = App()
    inner.middleware(middleware)
    inner.webtransport("/member")(member)
    app.mount(f"/{name}", inner)
    names.append(f"/{name}/member")

free = App()
free.webtransport("/member")(member)
app.mount("/free", free)


@app.get("/names")
def listed() -> list[str]:
    """The paths."""
    return names
