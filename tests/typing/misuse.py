"""Mistakes that type checkers have to find: each line with `# wrong` is an error under both of them."""

from __future__ import annotations

from citius import App, Config, NotFound, Request, Response
from citius.http import Client as HttpClient
from citius.redis import Redis
from citius.testing import Client

app = App()

app.get(7)  # wrong
app.get("/", blocking="yes")  # wrong
app.route("/", method="GET")  # wrong
app.mount("/x", "module:app")  # wrong
app.exception_handler("404")  # wrong
Config(port="8000")  # wrong
Config(8000)  # wrong
Response("x", status_code="200")  # wrong
NotFound(404, 5)  # wrong
Client("module:app")  # wrong


def handler(request: Request) -> None:
    request.method = "GET"  # wrong
    request.json(Response).price  # wrong
    request.header(7)  # wrong


async def on_redis(redis: Redis[bytes]) -> int:
    await redis.set("k", object())  # wrong
    await redis.set("k", {"a": 1})  # wrong
    await redis.get(7)  # wrong
    (await redis.get("k")) + 1  # wrong
    redis.sync.get("k").upper()  # wrong
    return redis.incr("n")  # wrong


async def on_services(client: HttpClient) -> int:
    await client.get("/", json={})  # wrong
    await client.get("/", timout=1)  # wrong
    await client.post("/", data=7)  # wrong
    client.get("/").text  # wrong
    client.sync.get("/").iter_lines()  # wrong
    return (await client.get("/")).decode(str)  # wrong
