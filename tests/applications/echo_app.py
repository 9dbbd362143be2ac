"""What the echo application of the testkit does: any method, any target."""

# pyright: basic

from citius import App, Response

app = App()


def echo(request):
    head = request.method.encode() + b" " + request.raw_path
    if request.raw_query:
        head += b"?" + request.raw_query
    body = request.body()
    return Response(b"%b %d\n" % (head, len(body)) + body, content_type="text/plain")


METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"]
app.route("/", methods=METHODS)(echo)
app.route("/{path:path}", methods=METHODS)(echo)


@app.middleware
def everything_else(request, next):
    response = next(request)
    return echo(request) if response.status_code in (204, 404, 405) else response
