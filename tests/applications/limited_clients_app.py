"""Routes of one rate limit, whose clients are told apart by the extension or by a function."""

from citius import App, Request
from citius.web.middleware import RateLimit
from citius.web.middleware.ratelimit import by_client

app = App()


def by_function(request: Request) -> str:
    return by_client(request)


app.middleware(RateLimit(1000, 3600, name="same", only=["/def", "/async"]))
app.middleware(RateLimit(1000, 3600, name="same", only=["/function"], key=by_function))


@app.get("/def")
@app.get("/function")
def plain() -> str:
    return "x"


@app.get("/async")
async def coroutine() -> str:
    return "x"
