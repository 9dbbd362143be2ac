"""The contract on Falcon (WSGI): one resource class per page, as its tutorial writes them."""

import time

import falcon
import records_msgspec as records
import work


class Hello:
    def on_get(self, req, resp):
        resp.text = "Welcome!\n"


class ParseMsgpack:
    def on_get(self, req, resp):
        resp.text = records.parse_msgpack(req.get_param("texts") == "varied")


class EncodeJson:
    def on_get(self, req, resp):
        resp.text = records.encode_json()


class TransferData:
    def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_JSON
        resp.data = records.JSON_ARRAY


class MillionLoop:
    def on_get(self, req, resp):
        resp.text = str(work.million_loop(req.get_param_as_int("seed", default=1)))


class Sleep:
    def on_get(self, req, resp):
        time.sleep(0.002)  # gevent's, by gunicorn's monkey patching
        resp.text = "OK"


class Fibonacci:
    def on_get(self, req, resp):
        resp.text = work.fibonacci_answer(req.get_param("first"))


class Classify:
    def on_get(self, req, resp, rest=""):
        resp.data = work.classify(req.path.encode())


app = falcon.App(media_type=falcon.MEDIA_TEXT)
app.add_route("/", Hello())
app.add_route("/parse-msgpack", ParseMsgpack())
app.add_route("/encode-json", EncodeJson())
app.add_route("/transfer-data", TransferData())
app.add_route("/million-loop", MillionLoop())
app.add_route("/async", Sleep())
app.add_route("/fibonacci", Fibonacci())
app.add_route("/classify/", Classify())
app.add_route("/classify/{rest:path}", Classify())
