"""Server-sent events on Citius."""

from citius import App, Broadcast, EventStream, Request, event_stream

app = App()
own: list[EventStream] = []
all_alike = Broadcast()


def text(number: int) -> str:
    """58 bytes: an event of 66 with its field name and the lines' ends."""
    return f"{number:08} The quick brown fox jumps over the lazy dog again"


@app.get("/sse")
def sse(n: int):
    """So many events, as fast as the client reads."""
    return event_stream(text(number) for number in range(n))


@app.get("/own")
async def follow_own():
    stream = EventStream()
    own.append(stream)
    return stream.response()


@app.get("/all")
async def follow_all(request: Request):
    return all_alike.response(request)


@app.post("/own")
async def send_own():
    """An event for each stream, another one for each."""
    own[:] = [stream for number, stream in enumerate(own) if stream.send(text(number))]
    return str(len(own))


@app.post("/all")
async def send_all():
    """One event for all streams."""
    return str(all_alike.send(text(0)))
