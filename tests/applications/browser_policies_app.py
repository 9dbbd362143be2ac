"""CORS and security headers for a browser."""

# pyright: basic

import os

from citius import App, Response
from citius.web.middleware import CORS, SecurityHeaders, csp_nonce

app = App()

allowed = os.environ.get("ALLOWED", "http://nobody.example")
app.middleware(
    CORS([allowed], methods=["GET", "PUT"], headers=["x-key"], credentials=True, expose=["x-total"])
)


@app.get("/data")
def data(request):
    total = request.cookies.get("who", "nobody")
    return Response("secret", headers={"x-total": total, "x-hidden": "1"})


@app.put("/data")
def put(request):
    return "put " + request.header("x-key", "")


@app.get("/cookie")
def cookie():
    response = Response("set")
    response.headers.set_cookie("who", "me")
    return response


@app.get("/fails")
def fails():
    raise ValueError


pages = App()
pages.middleware(SecurityHeaders())


@pages.get("/")
def page(request):
    nonce = csp_nonce(request)
    return Response(
        f"<script nonce={nonce}>window.ours = 1</script>"
        "<script>window.injected = 1</script><img src=x onerror='window.injected = 2'>",
        content_type="text/html",
    )


app.mount("/pages", pages)
