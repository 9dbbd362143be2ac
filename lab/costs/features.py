"""Instructions per request that each feature of the framework takes when used: `features.py [NAME...]`.

Each feature is a request to an application that differs by the feature alone from the one that it is
compared with. The way of counting is that of `counter.py`, 24 requests pipelined, so that the turns of
the event loop, whose number depends on the load of the machine, hardly count. `hello` and `typed` are counted
in an application that has none of the features and in one that has them on other routes: what is not used
should cost nothing.
"""

from __future__ import annotations

import argparse
import functools
from dataclasses import dataclass

from counter import ROOT, TOGETHER, App, Workload, counts
from instructions import ITEM

HEAD = """
import asyncio
from typing import Annotated
import msgspec
from citius import App, Depends, Event, Header, Query, Request, Response, Router, Templates, Unauthorized
from citius import defer, event_stream, file_response, json_response
from citius.web.middleware import *
from citius.web.security import *
from citius.go import sleep

app = App()

class Item(msgspec.Struct):
    name: str
    price: float
    tags: list[str] = []

class Strict(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=80)]
    price: Annotated[float, msgspec.Meta(gt=0)]
    tags: list[str] = []

class Stored(Item):
    cost: float = 1.0
"""
ROUTES = """
@app.get("/")
def hello():
    return "Welcome!\\n"

@app.get("/plain/{id:int}")
def typed(id: int, limit: int = 10):
    return {"id": id, "limit": limit}

# With a coroutine the application has an event loop, which costs each turn something.
@app.get("/coroutine")
async def coroutine():
    return "Welcome!\\n"
"""
FEATURES = """
item, stored = Item("a keyboard", 49.5, ["input", "usb"]), Stored("a keyboard", 49.5, ["input", "usb"])

def dependency() -> str:
    return "Welcome!\\n"

def generator():
    yield "Welcome!\\n"

def keyed(key: Annotated[str, Header(alias="X-API-Key")] = "") -> str:
    if key != "k":
        raise Unauthorized("the key is not known")
    return "Welcome!\\n"

@app.get("/dependency")
def with_dependency(found: Annotated[str, Depends(dependency)]):
    return found

@app.get("/generator")
def with_generator(found: Annotated[str, Depends(generator)]):
    return found

@app.get("/keyed")
def with_key(found: Annotated[str, Depends(keyed)]):
    return found

api_key = APIKey({"k": Principal("me")})

@app.get("/guard", dependencies=[Depends(api_key)])
def guarded():
    return "Welcome!\\n"

@app.get("/limited")
def limited(limit: Annotated[int, Query(ge=1, le=100)] = 10):
    return "Welcome!\\n"

@app.get("/serial", serial=True)
def serial():
    return "Welcome!\\n"

@app.get("/parks", serial=True)
def parks():
    sleep(0)
    return "Welcome!\\n"

@app.get("/suspends")
async def suspends():
    await asyncio.sleep(0)
    return "Welcome!\\n"

@app.get("/query")
def query(limit: int = 10):
    return "Welcome!\\n"

@app.post("/body")
def body(item: Item):
    return "Welcome!\\n"

@app.post("/strict")
def strict(item: Strict):
    return "Welcome!\\n"

@app.get("/json")
def json():
    return item

@app.get("/model")
def model() -> Item:
    return item

@app.get("/filtered")
def filtered() -> Item:
    return stored

@app.get("/status", status_code=201)
def status():
    return item

@app.get("/response")
def response():
    return Response("Welcome!\\n")

async def work() -> None:
    pass

@app.get("/defer")
def deferred(request: Request):
    defer(request, work)
    return "Welcome!\\n"

@app.get("/request")
def with_request(request: Request):
    return "Welcome!\\n"

templates = Templates("templates")

@app.get("/template")
def template(request: Request):
    return templates("page.html", request, {"items": [item, item, item]})

@app.get("/file")
def file():
    return file_response("page.txt")
"""
MIDDLEWARE = {
    "function": """
@app.middleware
def pass_on(request, next):
    return next(request)
""",
    "CORS": 'app.middleware(CORS(["https://shop.example"]))',
    "TrustedHosts": 'app.middleware(TrustedHosts(["127.0.0.1"]))',
    "SecurityHeaders": "app.middleware(SecurityHeaders())",
    "Sessions": 'app.middleware(Sessions("a secret of thirty-two characters!"))',
    "Sessions, read": """
app.middleware(Sessions("a secret of thirty-two characters!"))

@app.middleware
def read(request, next):
    session(request).get("user")
    return next(request)
""",
    "CSRF": "app.middleware(CSRF())",
    "ETags": "app.middleware(ETags())",
    "RateLimit": "app.middleware(RateLimit(10**9, 60))",
    "Timeout": "app.middleware(Timeout(5, skip_def=True))",
    "Authenticate": 'app.middleware(Authenticate(APIKey({"k": Principal("me")})))',
}


@dataclass(frozen=True, slots=True)
class Feature:
    """A request, and what it is compared with.

    Attributes:
        base: The name of a feature or of a workload of the plain application.
        setup: Lines that the application has besides.
    """

    title: str
    base: str
    target: str
    body: bytes = b""
    fields: bytes = b""
    status: bytes = b"200"
    setup: str = ""


KEY = b"X-API-Key: k\r\n"
ORIGIN = b"Origin: https://shop.example\r\n"
PLAIN = {"hello": Workload(App(""), "/"), "typed": Workload(App(""), "/plain/7?limit=20")}
FEATURE_REQUESTS = {
    "hello": Feature("a hello, the features on other routes", "hello", "/"),
    "typed": Feature("a typed handler, the features on other routes", "typed", "/plain/7?limit=20"),
    "request": Feature("a handler that takes the request", "hello", "/request"),
    "response": Feature("a `Response` made by the handler", "hello", "/response"),
    "serial": Feature("`serial=True`, a handler that does not wait", "hello", "/serial"),
    "parks": Feature("`serial=True`, `sleep(0)` once", "serial", "/parks"),
    "suspends": Feature("`await asyncio.sleep(0)` in an `async def` handler", "hello", "/suspends"),
    "query": Feature("a parameter of the query, `int`", "hello", "/query?limit=20"),
    "limited": Feature("constraints on it, `Query(ge=1, le=100)`", "query", "/limited?limit=20"),
    "body": Feature("a body of 57 bytes as a Struct", "hello", "/body", ITEM),
    "strict": Feature("constraints on two of its fields", "body", "/strict", ITEM),
    "json": Feature("a Struct as the result", "hello", "/json"),
    "model": Feature("the declared response, of that class", "json", "/model"),
    "filtered": Feature("the declared response, filtered from a class with more fields", "json", "/filtered"),
    "status": Feature("`status_code=201`", "json", "/status", status=b"201"),
    "dependency": Feature("a dependency, `def`", "hello", "/dependency"),
    "generator": Feature("a dependency, a generator", "hello", "/generator"),
    "keyed": Feature("a dependency that reads a header field", "hello", "/keyed", fields=KEY),
    "guard": Feature("a guard, `APIKey` of a route", "hello", "/guard", fields=KEY),
    "defer": Feature("work after the response, `defer` of an `async def`", "request", "/defer"),
    "template": Feature("a template with a loop of three", "request", "/template"),
    "file": Feature("a file of 9 bytes, `file_response`", "hello", "/file"),
    **{
        name: Feature(
            f"middleware: `{name}`" if name != "function" else "middleware: a function that calls `next`",
            "hello", "/", fields=ORIGIN if name == "CORS" else KEY, setup=setup,
        )
        for name, setup in MIDDLEWARE.items()
    },
}  # fmt: skip
TEMPLATE = "{% for item in items %}<li>{{ item.name }}, {{ item.price }}</li>{% endfor %}\n"


def measured(source: str, requests: dict[str, Workload]) -> dict[str, float]:
    """Return the instructions of requests to one application."""
    app = App(source)
    workloads = {
        name: Workload(app, one.target, one.body, TOGETHER, fields=one.fields, status=one.status)
        for name, one in requests.items()
    }
    return counts(ROOT, app, list(workloads), workloads)


@functools.cache
def plain() -> dict[str, float]:
    """Return what an application takes that has none of the features."""
    return measured(HEAD + ROUTES, PLAIN)


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = f"of {', '.join(FEATURE_REQUESTS)}; all without a name"
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    chosen = parser.parse_args().names or list(FEATURE_REQUESTS)
    if unknown := set(chosen) - FEATURE_REQUESTS.keys():
        parser.error(f"no feature has the name {', '.join(sorted(unknown))}; {names}")
    files = f"""
from pathlib import Path
Path("templates").mkdir(exist_ok=True)
Path("templates/page.html").write_text({TEMPLATE!r})
Path("page.txt").write_text("Welcome!\\n")
"""
    routes = {name: one for name, one in FEATURE_REQUESTS.items() if not one.setup}
    wanted = {*chosen, *(FEATURE_REQUESTS[name].base for name in chosen)} & routes.keys()
    requests = {
        name: Workload(App(""), one.target, one.body, fields=one.fields, status=one.status)
        for name, one in routes.items()
        if name in wanted
    }
    found = measured(HEAD + files + FEATURES + ROUTES, requests) if requests else {}
    print("| feature | instructions | of these its own |\n|---|---:|---:|", flush=True)
    for name in chosen:
        one = FEATURE_REQUESTS[name]
        if one.setup:
            request = Workload(App(""), one.target, fields=one.fields)
            found |= measured(HEAD + one.setup + ROUTES, {name: request})
        base = plain()[one.base] if one.base in PLAIN else found[one.base]
        print(f"| {one.title} | {found[name]:,.0f} | {found[name] - base:+,.0f} |", flush=True)


if __name__ == "__main__":
    main()
