"""Routes that pass requests on without Python beside the same with Python, which counts."""

# pyright: basic

import os

from citius import App
from citius.http import Client, Timeout
from citius.http.gateway import Forward, ForwardedRequest, Upstreams
from counted_forwards import seen

servers = os.environ["UPSTREAMS"].split()
client = Client(servers[0], headers={"x-own": "1", "X-Replaced": "by the gateway"})
app = App(lifespan=client.lifespan)


def looks(request: ForwardedRequest) -> None:
    """With a hook each request is Python's."""


several = Upstreams(servers, failures=1, failed_s=0.05)
for name, hook in (("direct", None), ("python", looks)):
    app.forward(f"/{name}/as/{{rest:path}}", client, path="/s/{rest}", on_request=hook)
    app.forward(
        f"/{name}/both/{{rest:path}}", client, path="/s/{rest}", host="client", forwarded="both",
        headers={"x-fixed": "2"}, via="edge", on_request=hook,
    )  # fmt: skip
    app.forward(f"/{name}/several/{{rest:path}}", several, on_request=hook)
    app.forward(f"/{name}/short/{{rest:path}}", client, timeout=Timeout(0.2), on_request=hook)


@app.get("/counts")
def counts() -> dict[str, int]:
    return dict(seen)


@app.get("/stats")
def stats() -> dict[str, object]:
    of_several = several.client.stats()
    return {"client": client.stats(), "of_several": of_several, "servers": several.stats()}


@app.get("/value")
async def value() -> Forward:
    return Forward(client, path="/s/0")
