"""Routes with limits, whose requests Python counts where it passes them on."""

# pyright: basic

import os

from citius import App
from citius.http import CircuitBreaker, Client, Limits
from citius.http.gateway import Upstreams
from counted_forwards import seen

servers = os.environ["UPSTREAMS"].split()
slots = Client(servers[0], limits=Limits(requests_per_origin_max=1))
breaker = Client(servers[0], breaker=CircuitBreaker(failures=2, open_s=60))
by_field = Upstreams(servers, balance="hash", key="x-user")
by_path = Upstreams(servers, balance="hash", key=":path")
by_function = Upstreams(
    servers, balance="hash", key=lambda request: request.header("x-user", "") or ""
)
app = App()
app.forward("/max/{rest:path}", servers, requests_max=1)
app.forward("/slots/{rest:path}", slots)
app.forward("/breaker/{rest:path}", breaker)
app.forward("/field/{rest:path}", by_field)
app.forward("/path/{rest:path}", by_path)
app.forward("/function/{rest:path}", by_function)


@app.get("/counts")
def counts() -> dict[str, int]:
    return dict(seen)
