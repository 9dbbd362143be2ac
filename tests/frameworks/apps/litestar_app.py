"""Litestar over the course."""

from typing import Annotated

import course
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.datastructures import UploadFile
from litestar.enums import RequestEncodingType
from litestar.params import Body
from litestar.response import File, Redirect, Stream


@get("/hello", media_type=MediaType.TEXT)
async def hello() -> str:
    return course.HELLO


@get("/greet/{name:str}", sync_to_thread=True)
def greet(name: str, times: int = 1) -> dict[str, str | int]:
    return {"name": name, "times": times}


@get("/show")
async def show(request: Request) -> dict[str, object]:
    return {
        "method": request.method,
        "url": str(request.url),
        "client": request.client.host,
        "query": request.url.query,
        "fields": {name: ",".join(request.headers.getall(name, [])) for name in course.SHOWN},
    }


@post("/echo", status_code=200, media_type="application/octet-stream")
async def echo(request: Request) -> bytes:
    return await request.body()


@post("/form", status_code=200)
async def form(
    data: Annotated[dict[str, str], Body(media_type=RequestEncodingType.URL_ENCODED)],
) -> dict[str, str]:
    return data


@post("/upload", status_code=200)
async def upload(request: Request) -> dict[str, object]:
    data = await request.form()
    file: UploadFile = data["file"]
    return course.described(data["title"], file.filename, file.content_type, await file.read())


@get("/stream")
async def stream() -> Stream:
    return Stream(course.async_pieces(), media_type="text/plain")


@get("/endless")
async def endless() -> Stream:
    return Stream(course.async_endless(), media_type="text/plain")


@get("/fail-later")
async def fail_later() -> Stream:
    return Stream(course.async_fail_later(), media_type="text/plain")


@get("/left")
async def left() -> int:
    return course.left


@get("/fail")
async def fail() -> None:
    raise course.Mistake("now")


@get("/cookies")
async def cookies() -> Response[str]:
    response = Response("crumbs", media_type=MediaType.TEXT)
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2", max_age=60)
    return response


@get("/redirect")
async def redirect() -> Redirect:
    return Redirect("/hello")


@get("/nothing", status_code=204)
async def nothing() -> None:
    return None


@get("/file")
async def file() -> File:
    return File(course.FILE, media_type="application/octet-stream")


app = Litestar(
    [
        hello, greet, show, echo, form, upload, stream, endless, fail_later, left, fail, cookies,
        redirect, nothing, file,
    ],
    request_max_body_size=None,
)  # fmt: skip
