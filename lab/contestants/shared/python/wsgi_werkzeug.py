"""The contract on Werkzeug without URL routing, over dicts: the Python of article 000."""

import records_stdlib as records
import work
from werkzeug.wrappers import Request, Response


def hello(request):
    return Response("Welcome!\n")


def parse_msgpack(request):
    return Response(records.parse_msgpack(request.args.get("texts") == "varied"))


def encode_json(request):
    return Response(records.encode_json())


def transfer_data(request):
    return Response(records.JSON_ARRAY, content_type="application/json")


def million_loop(request):
    return Response(str(work.million_loop(request.args.get("seed", 1, type=int))))


def fibonacci(request):
    return Response(work.fibonacci_answer(request.args.get("first")))


def classify(request):
    return Response(work.classify(request.path.encode()))


ROUTES = {
    "/": hello,
    "/parse-msgpack": parse_msgpack,
    "/encode-json": encode_json,
    "/transfer-data": transfer_data,
    "/million-loop": million_loop,
    "/fibonacci": fibonacci,
}


@Request.application
def app(request):
    path = request.path
    handler = ROUTES.get(path)
    if handler is not None:
        return handler(request)
    if path.startswith("/classify/"):
        return classify(request)
    return Response("no such page\n", status=404)
