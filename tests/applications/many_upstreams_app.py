"""A gateway before the servers in UPSTREAMS, chosen in each way, and left alone for a short time."""

# pyright: basic

import os

from citius import App
from citius.http.gateway import Upstreams

app = App()
servers = os.environ["UPSTREAMS"].split()
made = {
    "turn": Upstreams(servers, failed_s=0.2),
    "least": Upstreams(servers, failed_s=0.2, balance="least_requests"),
    "hash": Upstreams(servers, failed_s=0.2, balance="hash", key="x-key"),
    "python": Upstreams(
        servers, failed_s=0.2, balance="hash", key=lambda it: it.header("x-key", "")
    ),
}
for name, upstreams in made.items():
    app.forward(f"/{name}/{{rest:path}}", upstreams)


@app.post("/drain/{name}/{at:int}/{drains:int}")
async def drain(name: str, at: int, drains: int) -> None:
    made[name].drain(servers[at], drains=bool(drains))


@app.get("/under-way/{name}")
def under_way(name: str) -> int:
    return sum(int(str(one["requests"])) for one in made[name].stats().values())
