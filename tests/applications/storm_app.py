"""The same service natively, as ASGI and as WSGI: it keeps what it should not, and looks at what others have.

Every response repeats the token of its request, after values that only this request has put in its context,
its scope or environ and its task. ``spy`` runs in a thread and looks at the objects of other threads all
the time.
"""

# pyright: basic

import asyncio
import contextvars
import gc
import random
import threading
import time

from citius import App, Request, Response, defer

mine = contextvars.ContextVar("mine", default="")
kept = []
dice = random.Random(1)


def spy():
    """Touches what requests have left behind, from a thread that serves none."""
    # Not as a daemon: 3.14 can wait for ever at its end for one that collects objects then.
    while threading.main_thread().is_alive():
        time.sleep(0.02)
        if len(kept) > 200:
            del kept[:100]
        for one in kept[:]:
            if isinstance(one, dict):
                one.get("path")
                len(one)
            else:
                repr(one)
        if dice.random() < 0.02:
            found = [one for one in gc.get_objects() if isinstance(one, (dict, asyncio.Task))]
            kept.extend(found[-5:])


threading.Thread(target=spy).start()


def check(token, seen):
    """What the request finds where it has put its token."""
    return token if seen == token else f"{token} met {seen}"


async def work(kind, token):
    """What a coroutine does by the kind of its request; returns its response's text."""
    task = asyncio.current_task()
    assert task is not None
    found = mine.get()
    mine.set(token)
    if found:
        return f"{token} begins with {found}"
    if kind == "keep":
        kept.append(task)
        kept.append(contextvars.copy_context())
    elif kind == "name":
        task.set_name(token)
        await asyncio.sleep(0)
    elif kind == "sleep":
        await asyncio.sleep(dice.random() / 200)
    elif kind == "gather":
        await asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001))
    elif kind == "timeout":
        try:
            async with asyncio.timeout(0.001):
                await asyncio.sleep(1)
        except TimeoutError:
            pass
    elif kind == "cancel":
        asyncio.get_running_loop().call_later(0.001, task.cancel)
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            task.uncancel()
    if asyncio.current_task() is not task:
        return f"{token} has another task"
    return check(token, mine.get())


def work_here(kind, token):
    """The same without a loop."""
    found = mine.get()
    reset = mine.set(token)
    if kind == "keep":
        kept.append(contextvars.copy_context())
        kept.append(reset)
    elif kind == "sleep":
        time.sleep(dice.random() / 200)
    return f"{token} begins with {found}" if found else check(token, mine.get())


app = App()
room = app.room("storm")


@app.get("/def/{kind}/{token}")
def serve_here(request: Request):
    return work_here(request.path_params["kind"], request.path_params["token"])


@app.get("/async/{kind}/{token}")
async def serve(request: Request):
    kind, token = request.path_params["kind"], request.path_params["token"]
    if kind == "defer":
        defer(request, work, "sleep", token)
    return await work(kind, token)


@app.get("/block/{kind}/{token}", blocking=True)
def serve_in_thread(request: Request):
    return work_here(request.path_params["kind"], request.path_params["token"])


@app.post("/body/{token}")
async def echo(request: Request):
    content = request.json()
    return {
        "token": check(request.path_params["token"], content["token"]),
        "n": len(content["text"]),
    }


@app.get("/stream/{token}")
async def stream(request: Request):
    token = request.path_params["token"]
    mine.set(token)
    for _ in range(20):
        await asyncio.sleep(0)
        yield check(token, mine.get()) + "\n"


@app.get("/fails/{token}")
async def fail(request: Request):
    raise ValueError(request.path_params["token"])


@app.exception_handler(ValueError)
def on_error(request: Request, error: ValueError):
    return Response(check(request.path_params["token"], str(error)), 500)


@app.websocket("/ws")
async def chat(ws):
    room.join(ws)
    async for message in ws:
        if message.startswith("all "):
            room.send(message)
        else:
            await ws.send(message)


async def asgi(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        return await send({"type": "lifespan.shutdown.complete"})
    _, interface, kind, *rest = scope["path"].split("/")
    token = rest[0] if rest else kind
    if "mine" in scope or "mine" in scope["state"] or "mine" in scope["extensions"]:
        token += " finds what another request has left"
    scope["mine"] = scope["state"]["mine"] = scope["extensions"]["mine"] = token
    if kind == "keep":
        kept.extend((scope, receive, send, scope["state"], scope["headers"]))
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message["body"]
        if not message["more_body"]:
            break
    text = await work(kind, token)
    if interface == "stream":
        text = f"{text}\n" * 20
    await send({"type": "http.response.start", "status": 200,
                "headers": [(b"content-length", str(len(text)).encode())]})  # fmt: skip
    await send({"type": "http.response.body", "body": text.encode()})
    if kind == "defer":
        await asyncio.sleep(0.01)


def wsgi(environ, start_response):
    _, interface, kind, *rest = environ["PATH_INFO"].split("/")
    token = rest[0] if rest else kind
    if "mine" in environ:
        token += " finds what another request has left"
    environ["mine"] = token
    if kind == "keep":
        kept.extend((environ, start_response))
    environ["wsgi.input"].read()
    text = work_here(kind, token)
    if interface == "stream":
        text = f"{text}\n" * 20
    start_response("200 OK", [("Content-Length", str(len(text)))])
    return [text.encode()]
