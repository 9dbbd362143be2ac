"""Rooms, events, limits and sessions of one machine, and which modules of others were imported for that."""

# pyright: basic

import sys

from citius import App
from citius.web.middleware import RateLimit, Sessions

app = App()
app.middleware(RateLimit(1000, 1))
app.middleware(Sessions("a long secret from the environment"))
lobby = app.room("lobby")
news = app.broadcast("news", history=3)

OTHERS = (
    "citius.cluster", "citius.web.execution.executors", "citius.web.realtime.rooms",
    "citius.process.sharedtable", "citius.web.realtime.run", "citius.web.realtime.bus", "citius.mcp",
    "citius.web.uploads", "citius.web.connect", "connectrpc",
    "redis", "nats", "distributed", "concurrent.futures.process",
)  # fmt: skip


@app.get("/")
def modules() -> list[str]:
    return [name for name in sys.modules if name.startswith(OTHERS)]
