"""BlackSheep over the course."""

import course
from blacksheep import (
    Application,
    Content,
    Cookie,
    Request,
    Response,
    StreamedContent,
    json,
    no_content,
    redirect,
    text,
)
from blacksheep import (
    file as send_file,
)

app = Application()
get, post = app.router.get, app.router.post


@get("/hello")
async def hello():
    return text(course.HELLO)


@get("/greet/{name}")
async def greet(name: str, times: int = 1):
    return json({"name": name, "times": times})


@get("/show")
async def show(request: Request):
    fields = {
        name: ",".join(value.decode("latin-1") for value in request.headers.get(name.encode()))
        for name in course.SHOWN
    }
    return json(
        {
            "method": request.method,
            "path": request.url.path.decode(),
            "query": (request.url.query or b"").decode(),
            "client": request.client_ip,
            "fields": fields,
        }
    )


@post("/echo")
async def echo(request: Request):
    return Response(200, content=Content(b"application/octet-stream", await request.read() or b""))


@post("/form")
async def form(request: Request):
    return json(await request.form())


@post("/upload")
async def upload(request: Request):
    parts = {part.name: part for part in await request.multipart()}
    file = parts[b"file"]
    return json(
        course.described(
            parts[b"title"].data.decode(),
            file.file_name.decode(),
            file.content_type.decode(),
            file.data,
        )
    )


def streamed(make):
    return Response(200, content=StreamedContent(b"text/plain", make))


@get("/stream")
async def stream():
    return streamed(course.async_pieces)


@get("/endless")
async def endless():
    return streamed(course.async_endless)


@get("/fail-later")
async def fail_later():
    return streamed(course.async_fail_later)


@get("/left")
async def left():
    return json(course.left)


@get("/fail")
async def fail():
    raise course.Mistake("now")


@get("/cookies")
async def cookies():
    response = text("crumbs")
    response.set_cookie(Cookie("one", "1", http_only=True))
    response.set_cookie(Cookie("two", "2", max_age=60))
    return response


@get("/redirect")
async def redirected():
    return redirect("/hello")


@get("/nothing")
async def nothing():
    return no_content()


@get("/file")
async def file():
    return send_file(course.FILE, "application/octet-stream")
