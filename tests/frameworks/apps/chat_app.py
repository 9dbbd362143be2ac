"""python-socketio: a chat with rooms and acknowledgements, beside a Starlette application."""

import socketio
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

# A client that is refused by polling may leave its server waiting for a whole ping and its timeout.
server = socketio.AsyncServer(
    async_mode="asgi", ping_interval=2, ping_timeout=5, http_compression=False
)


@server.event
async def connect(sid, environ, auth):
    if auth == {"token": "wrong"}:
        raise socketio.exceptions.ConnectionRefusedError("who are you?")
    await server.save_session(sid, {"name": (auth or {}).get("name", "nobody")})


@server.event
async def say(sid, words):
    session = await server.get_session(sid)
    await server.emit("said", {"name": session["name"], "words": words})
    return {"heard": len(words)}


@server.event
async def enter(sid, room):
    await server.enter_room(sid, room)


@server.event
async def tell(sid, room, data):
    await server.emit("told", data, room=room)


@server.event
async def disconnect(sid, reason):
    await server.emit("gone", reason)


async def hello(request):
    return PlainTextResponse("Hello, world")


app = socketio.ASGIApp(server, Starlette(routes=[Route("/hello", hello)]))
