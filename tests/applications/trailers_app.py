"""Trailer sections of requests."""

# pyright: basic

from citius import App, Response

app = App()


@app.post("/trailers")
def trailers(request):
    return {"body": request.body().decode(), "trailers": list(request.trailers.items())}


@app.post("/streamed-trailers", stream=True)
async def streamed_trailers(request):
    before = len(request.trailers)
    body = await request.read()
    return {"before": before, "body": body.decode(), "trailers": list(request.trailers.items())}


@app.get("/digest/{kind}")
async def digest(kind: str):
    total = 0

    async def pieces():
        nonlocal total
        for piece in ("abc", "de"):
            total += len(piece)
            yield piece

    def bad():
        return {"x": "a\r\nb: c"}

    trailers = {
        "function": lambda: {"X-Total": str(total)},
        "mapping": {"x-fixed": "1"},
        "bad": bad,
    }
    return Response(pieces(), headers={"trailer": "x-total"}, trailers=trailers[kind])
