"""FastAPI over the course, and what its tutorial teaches: models, dependencies with yield, background tasks,
validation errors, handlers that are `def`, cookies, headers, security, the OpenAPI page, lifespan."""

import time
from contextlib import asynccontextmanager
from typing import Annotated

import course
from fastapi import (
    BackgroundTasks,
    Cookie,
    Depends,
    FastAPI,
    File,
    Form,
    Header,
    HTTPException,
    Path,
    Query,
    Request,
    Response,
    UploadFile,
)
from fastapi.responses import FileResponse, PlainTextResponse, RedirectResponse, StreamingResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials
from pydantic import BaseModel, Field

steps: list[str] = []


@asynccontextmanager
async def lifespan(app: FastAPI):
    app.state.started = "yes"
    yield
    print("lifespan over", flush=True)


app = FastAPI(title="The tutorial", lifespan=lifespan)


@app.get("/hello", response_class=PlainTextResponse)
async def hello():
    return course.HELLO


@app.get("/greet/{name}")
def greet(name: str, times: int = 1):
    return {"name": name, "times": times}


@app.get("/show")
async def show(request: Request):
    fields = {name: ",".join(request.headers.getlist(name)) for name in course.SHOWN}
    return {
        "method": request.method,
        "url": str(request.url),
        "client": request.client.host,
        "query": request.url.query,
        "http": request.scope["http_version"],
        "fields": fields,
    }


@app.post("/echo")
async def echo(request: Request):
    return Response(await request.body(), media_type="application/octet-stream")


@app.post("/form")
async def form(a: Annotated[str, Form()], b: Annotated[str, Form()]):
    return {"a": a, "b": b}


@app.post("/upload")
async def upload(title: Annotated[str, Form()], file: Annotated[UploadFile, File()]):
    return course.described(title, file.filename, file.content_type, await file.read())


@app.get("/stream")
async def stream():
    return StreamingResponse(course.async_pieces(), media_type="text/plain")


@app.get("/endless")
async def endless():
    return StreamingResponse(course.async_endless(), media_type="text/plain")


@app.get("/left")
async def left():
    return course.left


@app.get("/fail")
async def fail():
    raise course.Mistake("now")


@app.get("/fail-later")
async def fail_later():
    return StreamingResponse(course.async_fail_later(), media_type="text/plain")


@app.get("/cookies", response_class=PlainTextResponse)
async def cookies(response: Response):
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2", max_age=60)
    return "crumbs"


@app.get("/redirect")
async def redirect():
    return RedirectResponse("/hello")


@app.get("/nothing", status_code=204)
async def nothing():
    return None


@app.get("/file")
async def file():
    return FileResponse(course.FILE, media_type="application/octet-stream")


# --- the tutorial ---


class Item(BaseModel):
    name: str = Field(min_length=2)
    price: float = Field(gt=0)
    tags: list[str] = []


@app.post("/items/{item_id}", status_code=201)
async def make_item(
    item_id: Annotated[int, Path(ge=1)],
    item: Item,
    q: Annotated[list[str] | None, Query()] = None,
    ads_id: Annotated[str | None, Cookie()] = None,
    x_token: Annotated[str | None, Header()] = None,
):
    if item_id == 404:
        raise HTTPException(404, detail="no such item", headers={"X-Error": "There goes my error"})
    return {"item_id": item_id, **item.model_dump(), "q": q, "ads_id": ads_id, "x_token": x_token}


async def session():
    steps.append("open")
    try:
        yield len(steps)
    finally:
        steps.append("close")


@app.get("/depends")
async def depends(number: Annotated[int, Depends(session)]):
    return number


@app.get("/depends-fails")
async def depends_fails(number: Annotated[int, Depends(session)]):
    raise HTTPException(418)


@app.get("/steps")
def shown_steps():
    return steps


def write(word: str) -> None:
    time.sleep(0.05)
    steps.append(word)


@app.post("/notify/{word}", status_code=202)
async def notify(word: str, tasks: BackgroundTasks):
    tasks.add_task(write, word)
    return {"accepted": word}


security = HTTPBasic()


@app.get("/me")
def me(who: Annotated[HTTPBasicCredentials, Depends(security)]):
    return who.username


@app.middleware("http")
async def tag(request: Request, call_next):
    response = await call_next(request)
    response.headers["X-Tag"] = request.url.path
    return response


@app.get("/started")
async def started(request: Request):
    return request.app.state.started
