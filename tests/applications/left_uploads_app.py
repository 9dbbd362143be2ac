"""Applications that read an upload whose client leaves: `app` with mounts, `asgi`, `wsgi`."""

# pyright: basic

from citius import App, Response

app = App()


def begun():
    print("begun", flush=True)


async def read(request):
    begun()
    async for _ in request.stream():
        pass
    return "all"


@app.post("/async", stream=True)
async def in_coroutine(request):
    return await read(request)


@app.post("/goes-on", stream=True, on_disconnect="continue")
async def that_goes_on(request):
    return await read(request)


@app.post("/blocking", stream=True, blocking=True)
def in_thread(request):
    begun()
    return str(sum(map(len, request.stream())))


@app.post("/wrapped", stream=True, blocking=True)
def that_raises_another(request):
    begun()
    try:
        return str(sum(map(len, request.stream())))
    except OSError as error:
        raise ValueError("the upload is incomplete") from error


@app.post("/echo", stream=True)
async def echo(request):
    async def pieces():
        begun()
        async for piece in request.stream():
            yield piece

    return Response(pieces())


@app.post("/echo-blocking", stream=True, blocking=True)
def echo_in_thread(request):
    begun()
    return Response(iter(request.stream()))


@app.post("/defect", stream=True, blocking=True)
def that_has_a_defect(request):
    begun()
    try:
        return str(sum(map(len, request.stream())))
    except OSError:
        return {}["a defect"]


class ClientDisconnect(Exception):
    """As Starlette has it."""


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    begun()
    goes_on = True
    while goes_on:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        goes_on = message["more_body"]


def wsgi(environ, start_response):
    begun()
    environ["wsgi.input"].read()
    start_response("200 OK", [])
    return []


def wrapping(environ, start_response):
    try:
        return wsgi(environ, start_response)
    except OSError as error:
        raise ValueError("as Django has it") from error


app.mount("/asgi", asgi)
app.mount_wsgi("/wsgi", wsgi)
app.mount_wsgi("/wrapping", wrapping)
