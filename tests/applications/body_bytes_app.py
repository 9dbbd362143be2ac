"""Content that is held, streamed or ignored."""

# pyright: basic

from citius import App

app = App()


@app.post("/held")
def held(request):
    return str(len(request.body()))


@app.post("/streamed", stream=True)
async def streamed(request):
    return str(sum([len(piece) async for piece in request.stream()]))


@app.post("/small/{name}", body_bytes_max=10)
def small(request, name):
    return str(len(request.body()))


@app.post("/large", body_bytes_max=20_000_000)
def large(request):
    return str(len(request.body()))


@app.post("/small-stream", stream=True, body_bytes_max=10)
async def small_stream(request):
    return str(sum([len(piece) async for piece in request.stream()]))
