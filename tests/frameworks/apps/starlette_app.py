"""Starlette over the course, with sessions, templates of its own and lifespan state."""

from contextlib import asynccontextmanager

import course
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles

done = []
ended = []


@asynccontextmanager
async def lifespan(app):
    yield {"started": "yes"}


async def hello(request):
    return PlainTextResponse(course.HELLO)


async def greet(request):
    times = int(request.query_params.get("times", 1))
    return JSONResponse({"name": request.path_params["name"], "times": times})


async def show(request):
    fields = {name: ",".join(request.headers.getlist(name)) for name in course.SHOWN}
    return JSONResponse(
        {
            "method": request.method,
            "url": str(request.url),
            "client": request.client.host,
            "query": request.url.query,
            "root_path": request.scope["root_path"],
            "http": request.scope["http_version"],
            "fields": fields,
        }
    )


async def echo(request):
    return Response(await request.body(), media_type="application/octet-stream")


async def form(request):
    async with request.form() as data:
        return JSONResponse(dict(data))


async def upload(request):
    async with request.form() as data:
        file = data["file"]
        shown = course.described(data["title"], file.filename, file.content_type, await file.read())
    return JSONResponse(shown)


async def stream(request):
    return StreamingResponse(course.async_pieces(), media_type="text/plain")


async def endless(request):
    return StreamingResponse(course.async_endless(), media_type="text/plain")


async def left(request):
    return JSONResponse(course.left)


async def fail(request):
    raise course.Mistake("now")


async def fail_later(request):
    return StreamingResponse(course.async_fail_later(), media_type="text/plain")


async def cookies(request):
    response = PlainTextResponse("crumbs")
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2", max_age=60)
    return response


async def redirect(request):
    return RedirectResponse("/hello")


async def nothing(request):
    return Response(status_code=204)


async def file(request):
    return FileResponse(course.FILE, media_type="application/octet-stream")


async def count(request):
    request.session["count"] = request.session.get("count", 0) + 1
    return JSONResponse(request.session["count"])


async def state(request):
    return JSONResponse(request.state.started)


async def background(request):
    async def work():
        done.append("background")

    return JSONResponse(done, background=BackgroundTask(work))


async def until_gone(request):
    """Polls for the client's leaving, as handlers with long work do."""
    import asyncio

    while not await request.is_disconnected():
        await asyncio.sleep(0.01)
    course.leave()
    return PlainTextResponse("for nobody")


async def talk(ws):
    await ws.accept("chat" if "chat" in ws["subprotocols"] else None, [(b"x-own", b"yes")])
    fields = {name: ws.headers.getlist(name) for name in ("x-asked", "cookie", "origin")}
    await ws.send_json(
        {
            "url": ws.url.path + "?" + ws.url.query,
            "scheme": ws.url.scheme,
            "client": ws.client.host,
            "asked": ws["subprotocols"],
            "state": ws.state.started,
            "fields": fields,
        }
    )
    while True:
        message = await ws.receive()
        if message["type"] == "websocket.disconnect":
            ended.append((message["code"], message.get("reason") or ""))
            return
        text = message.get("text")
        if text is None:
            await ws.send_bytes(message["bytes"][::-1])
        elif text == "close":
            await ws.close(4001, "as you wish")
            return
        elif text == "fail":
            raise RuntimeError("as you wish")
        elif text == "return":
            return
        else:
            await ws.send_text(text)


async def ends(request):
    return JSONResponse(ended)


async def refuse(ws):
    await ws.close()


async def deny(ws):
    await ws.send_denial_response(JSONResponse({"why": "nobody"}, 401, {"x-own": "yes"}))


app = Starlette(
    routes=[
        WebSocketRoute("/talk", talk),
        WebSocketRoute("/refuse", refuse),
        WebSocketRoute("/deny", deny),
        Route("/ends", ends),
        Route("/hello", hello),
        Route("/greet/{name}", greet),
        Route("/show", show),
        Route("/echo", echo, methods=["POST"]),
        Route("/form", form, methods=["POST"]),
        Route("/upload", upload, methods=["POST"]),
        Route("/stream", stream),
        Route("/endless", endless),
        Route("/left", left),
        Route("/fail", fail),
        Route("/fail-later", fail_later),
        Route("/cookies", cookies),
        Route("/redirect", redirect),
        Route("/nothing", nothing),
        Route("/file", file),
        Route("/count", count),
        Route("/state", state),
        Route("/background", background),
        Route("/until-gone", until_gone),
        Mount("/static", StaticFiles(directory=course.os.path.dirname(course.FILE) or ".")),
        Mount(
            "/zipped",
            Starlette(
                routes=[Route("/stream", stream), Route("/hello", hello)],
                middleware=[Middleware(GZipMiddleware, minimum_size=5)],
            ),
        ),
    ],
    middleware=[Middleware(SessionMiddleware, secret_key="for tests", max_age=None)],
    lifespan=lifespan,
)
