"""A service on Falcon (WSGI): CORS, headers for browsers, and the time a request took."""

import time

import falcon


class Timed:
    def process_request(self, req, resp):
        req.context.began_at = time.perf_counter()

    def process_response(self, req, resp, resource, req_succeeded):
        took_ms = (time.perf_counter() - req.context.began_at) * 1e3
        resp.set_header("Server-Timing", f"app;dur={took_ms:.2f}")
        resp.set_header("X-Content-Type-Options", "nosniff")


class Greet:
    def on_get(self, req, resp, name):
        resp.media = {"hello": [name] * req.get_param_as_int("times", required=True)}


app = falcon.App(middleware=[falcon.CORSMiddleware(allow_origins="https://shop.example"), Timed()])
app.add_route("/greet/{name}", Greet())
