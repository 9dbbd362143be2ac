"""Falcon (WSGI) over the course."""

import course
import falcon


class Hello:
    def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_TEXT
        resp.text = course.HELLO


class Greet:
    def on_get(self, req, resp, name):
        resp.media = {"name": name, "times": req.get_param_as_int("times", default=1)}


class Show:
    def on_get(self, req, resp):
        resp.media = {
            "method": req.method,
            "url": req.url,
            "client": req.remote_addr,
            "query": req.query_string,
            "fields": {name: req.get_header(name) for name in course.SHOWN},
        }


class Echo:
    def on_post(self, req, resp):
        resp.content_type = "application/octet-stream"
        resp.data = req.bounded_stream.read()


class Form:
    def on_post(self, req, resp):
        resp.media = req.get_media()


class Upload:
    def on_post(self, req, resp):
        title, shown = "", {}
        for part in req.get_media():
            if part.name == "title":
                title = part.text
            else:
                shown = {"filename": part.filename, "type": part.content_type}
                data = part.stream.read()
        resp.media = course.described(title, shown["filename"], shown["type"], data)


class Stream:
    def __init__(self, make):
        self.make = make

    def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_TEXT
        resp.stream = self.make()


class Left:
    def on_get(self, req, resp):
        resp.media = course.left


class Fail:
    def on_get(self, req, resp):
        raise course.Mistake("now")


class Cookies:
    def on_get(self, req, resp):
        resp.text = "crumbs"
        resp.set_cookie("one", "1", secure=False)
        resp.set_cookie("two", "2", max_age=60, http_only=False)


class Redirect:
    def on_get(self, req, resp):
        raise falcon.HTTPFound("/hello")


class Nothing:
    def on_get(self, req, resp):
        resp.status = falcon.HTTP_204


class File:
    def on_get(self, req, resp):
        resp.content_type = "application/octet-stream"
        resp.set_stream(open(course.FILE, "rb"), course.os.path.getsize(course.FILE))


app = falcon.App()
app.req_options.strip_url_path_trailing_slash = True
app.add_route("/hello", Hello())
app.add_route("/greet/{name}", Greet())
app.add_route("/show", Show())
app.add_route("/echo", Echo())
app.add_route("/form", Form())
app.add_route("/upload", Upload())
app.add_route("/stream", Stream(course.pieces))
app.add_route("/endless", Stream(course.endless))
app.add_route("/fail-later", Stream(course.fail_later))
app.add_route("/left", Left())
app.add_route("/fail", Fail())
app.add_route("/cookies", Cookies())
app.add_route("/redirect", Redirect())
app.add_route("/nothing", Nothing())
app.add_route("/file", File())
