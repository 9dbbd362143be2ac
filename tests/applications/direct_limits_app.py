"""Routes with limits, whose requests Python counts where it passes them on."""

# pyright: basic

import os
from collections import Counter

from citius import App
from citius.http import CircuitBreaker, Client, Limits
from citius.http.gateway import Upstreams
from citius.http.gateway.forwarding import Forwarder

servers = os.environ["UPSTREAMS"].split()
slots = Client(servers[0], limits=Limits(requests_per_origin_max=1))
breaker = Client(servers[0], breaker=CircuitBreaker(failures=2, open_s=60))
by_field = Upstreams(servers, balance="hash", key="x-user")
by_path = Upstreams(servers, balance="hash", key=":path")
by_function = Upstreams(
    servers, balance="hash", key=lambda request: request.header("x-user", "") or ""
)
app = App()
seen = Counter()
original = Forwarder._exchange


async def counted(self, request, *rest):
    seen[request.path.split("/")[1]] += 1
    return await original(self, request, *rest)


setattr(Forwarder, "_exchange", counted)  # noqa: B010 - with a signature of its own
app.forward("/max/{rest:path}", servers, requests_max=1)
app.forward("/slots/{rest:path}", slots)
app.forward("/breaker/{rest:path}", breaker)
app.forward("/field/{rest:path}", by_field)
app.forward("/path/{rest:path}", by_path)
app.forward("/function/{rest:path}", by_function)


@app.get("/counts")
def counts() -> dict[str, int]:
    return dict(seen)
