"""Sessions of both kinds that pages and WebSockets read, for a browser."""

# pyright: basic

from citius import App, Response
from citius.web.middleware import (
    CSRF,
    MemoryStore,
    SessionCookie,
    Sessions,
    StoredSessions,
    session,
)

signed, stored = App(), App()
signed.middleware(
    Sessions("a secret of sixteen bytes", SessionCookie(name="signed", path="/signed"))
)
stored.middleware(StoredSessions(MemoryStore(), SessionCookie(name="stored", path="/stored")))
app = App()
app.middleware(CSRF())
app.mount("/signed", signed)
app.mount("/stored", stored)


@app.get("/")
def page():
    return Response("<p>page</p>", content_type="text/html")


def add(inner):
    @inner.get("/")
    def count(request):
        kept = session(request)
        kept["visits"] = kept.get("visits", 0) + 1
        return Response(f"<p>{kept['visits']}</p>", content_type="text/html")

    @inner.get("/end")
    def end(request):
        session(request).clear()
        return Response("<p>ended</p>", content_type="text/html")

    @inner.websocket("/live")
    async def live(ws):
        await ws.send(str(session(ws).get("visits", 0)))


add(signed)
add(stored)
