"""A gateway before the servers in UPSTREAMS, separated by blanks."""

# pyright: basic

import asyncio
import os

from citius import App, Depends, Forbidden, Request, Response, Router
from citius.http import Client, Limits, Timeout
from citius.http.gateway import Checks, Forward, ForwardedRequest, Upstreams, forward

servers = os.environ["UPSTREAMS"].split()
client = Client(
    servers[0],
    name="upstream",
    timeout=Timeout(read=5),
    limits=Limits(connections_per_origin_max=int(os.environ.get("CONNECTIONS", "100"))),
    http2="prior" if os.environ.get("H2") else False,
)
app = App(lifespan=client.lifespan)


def key(request: Request) -> None:
    if request.header("x-key") != "right":
        raise Forbidden("no key")


def add(request: ForwardedRequest) -> Response | None:
    if request.headers.get("x-answer") == "early":
        return Response(b"early", 418)
    request.headers["x-added"] = "by the gateway"
    return None


async def mark(request: Request, response: Response) -> None:
    response.headers["x-marked"] = "yes"


class Paused:
    """A hook that waits; how often it was called."""

    calls = 0
    event = asyncio.Event()


async def pause(request: ForwardedRequest) -> None:
    Paused.calls += 1
    await Paused.event.wait()


app.forward("/v1/{rest:path}", client)
app.forward("/moved/{rest:path}", client, path="/inner/{rest}")
app.forward("/guarded/{rest:path}", client, dependencies=[Depends(key)])
app.forward(
    "/hooked/{rest:path}", client, on_request=add, on_response=mark, headers={"x-fixed": "1"}
)
app.forward("/fixed/{rest:path}", client, headers={"x-fixed": "1"})
app.forward("/lists/{rest:path}", Client(servers[0], headers=[("x-of", "1"), ("x-of", "2")]))
app.forward("/host/{rest:path}", client, host="client", forwarded="both")
app.forward("/short/{rest:path}", client, timeout=Timeout(0.3), body_bytes_max=1000)
app.forward("/limited", client, requests_max=1)
app.forward("/paused", client, requests_max=1, on_request=pause)
app.forward("/many/{rest:path}", servers)
several = Upstreams(servers, balance="hash", key=lambda request: request.header("x-user", ""))
app.forward("/hash/{rest:path}", several)
if os.environ.get("CHECK"):
    checks = Checks("/health", every_s=0.05, failures=1, successes=1)
    app.forward("/checked/{rest:path}", Upstreams(servers, checks=checks))

inner = Router(prefix="/router", dependencies=[Depends(key)])
inner.forward("/{rest:path}", client)
app.include(inner)


@app.post("/called", stream=True)
async def called(request: Request) -> Response:
    return await forward(request, client, path="/from-handler")


@app.post("/held")
async def held(request: Request) -> Response:
    request.body()
    return await forward(request, client, headers={"x-held": "1"})


@app.get("/value")
async def value() -> Forward:
    return Forward(client, path="/from-value")


@app.get("/value-of-def")
def value_of_def() -> Forward:
    return Forward(client, path="/from-def")


@app.get("/made")
async def made(request: Request, path: str) -> Response:
    return await forward(request, client, path=f"/private/{path}")


@app.get("/calls-of-pause")
async def calls_of_pause(goes_on: bool = False) -> int:
    if goes_on:
        Paused.event.set()
    return Paused.calls


@app.get("/stats")
def stats() -> dict[str, int]:
    return client.stats()


@app.get("/worker")
def worker() -> int:
    return os.getpid()
