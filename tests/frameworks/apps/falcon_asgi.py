"""Falcon (ASGI) over the course."""

import course
import falcon
import falcon.asgi


class Hello:
    async def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_TEXT
        resp.text = course.HELLO


class Greet:
    async def on_get(self, req, resp, name):
        resp.media = {"name": name, "times": req.get_param_as_int("times", default=1)}


class Show:
    async def on_get(self, req, resp):
        resp.media = {
            "method": req.method,
            "url": req.url,
            "client": req.remote_addr,
            "query": req.query_string,
            "fields": {name: req.get_header(name) for name in course.SHOWN},
        }


class Echo:
    async def on_post(self, req, resp):
        resp.content_type = "application/octet-stream"
        resp.data = await req.stream.read()


class Form:
    async def on_post(self, req, resp):
        resp.media = await req.get_media()


class Upload:
    async def on_post(self, req, resp):
        title, name, kind, data = "", "", "", b""
        async for part in await req.get_media():
            if part.name == "title":
                title = await part.text
            else:
                name, kind = part.filename, part.content_type
                data = await part.stream.read()
        resp.media = course.described(title, name, kind, data)


class Stream:
    def __init__(self, make):
        self.make = make

    async def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_TEXT
        resp.stream = self.make()


class Left:
    async def on_get(self, req, resp):
        resp.media = course.left


class Fail:
    async def on_get(self, req, resp):
        raise course.Mistake("now")


class Cookies:
    async def on_get(self, req, resp):
        resp.text = "crumbs"
        resp.set_cookie("one", "1", secure=False)
        resp.set_cookie("two", "2", max_age=60, http_only=False)


class Redirect:
    async def on_get(self, req, resp):
        raise falcon.HTTPFound("/hello")


class Nothing:
    async def on_get(self, req, resp):
        resp.status = falcon.HTTP_204


class File:
    async def on_get(self, req, resp):
        resp.content_type = "application/octet-stream"

        async def blocks():
            with open(course.FILE, "rb") as file:
                while block := file.read(8192):
                    yield block

        resp.set_stream(blocks(), course.os.path.getsize(course.FILE))


app = falcon.asgi.App()
app.add_route("/hello", Hello())
app.add_route("/greet/{name}", Greet())
app.add_route("/show", Show())
app.add_route("/echo", Echo())
app.add_route("/form", Form())
app.add_route("/upload", Upload())
app.add_route("/stream", Stream(course.async_pieces))
app.add_route("/endless", Stream(course.async_endless))
app.add_route("/fail-later", Stream(course.async_fail_later))
app.add_route("/left", Left())
app.add_route("/fail", Fail())
app.add_route("/cookies", Cookies())
app.add_route("/redirect", Redirect())
app.add_route("/nothing", Nothing())
app.add_route("/file", File())
