"""Plain requests and responses."""

# pyright: basic

import asyncio

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


running = at_once = 0


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    global running, at_once
    running += 1
    at_once = max(running, at_once)
    await asyncio.sleep(ms / 1000)
    running -= 1
    return str(ms)


@app.get("/slow-at-once")
def slow_at_once():
    return str(at_once)


@app.post("/echo")
def echo(request):
    return request.body()


@app.post("/echo-async")
async def echo_async(request):
    return await request.read()


@app.route("/seen", methods=("GET", "POST"))
def seen(request):
    return {
        "method": request.method,
        "path": request.path,
        "raw_path": request.raw_path.decode(),
        "query": dict(request.query),
        "target": request.target.decode(),
        "version": request.http_version,
        "headers": request.headers.multi_items(),
        "client": request.client,
        "cookies": request.cookies,
        "scheme": request.scheme,
    }


@app.get("/nothing")
def nothing():
    return None


@app.get("/items/{id:int}")
def item(id):
    return {"id": id}


@app.get("/files/{name:path}")
def files(name):
    return name
