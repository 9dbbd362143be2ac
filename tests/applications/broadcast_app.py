"""Server-sent events from a broadcast."""

# pyright: basic

import asyncio

from citius import App, Broadcast, Response, event_stream

app = App()

news = Broadcast(history=3)
states = []


@app.get("/")
def page():
    return Response("page", content_type="text/html")


@app.get("/news")
async def follow(request):
    return news.response(request)


@app.post("/send/{text}")
def send(text):
    return news.send(text)


@app.get("/followers")
def followers():
    return len(news)


@app.get("/own")
async def own(request):
    async def events():
        try:
            yield "begun"
            await asyncio.sleep(60)
        finally:
            states.append("own ended")

    return event_stream(events())


@app.get("/states")
def seen():
    return states
