"""A WSGI application that sends trailers, and answers messages while more of them come."""

# pyright: basic

TRAILERS = [("x-status", "0"), ("x-text", "done")]


def app(environ, start_response):
    path = environ["PATH_INFO"]
    send_trailers = environ.get("wsgi.ext.http.send_trailers")
    if path == "/echo":
        return echo(environ["wsgi.input"], start_response, send_trailers)
    if path == "/early":
        try:
            send_trailers(TRAILERS)
        except RuntimeError:
            start_response("200 OK", [])
            return [b"refused"]
    length = [("Content-Length", "4")] if path.endswith("-length") else []
    write = start_response("200 OK", length)
    if send_trailers is None:
        return [b"none"]
    if path.startswith("/pieces"):
        return pieces(send_trailers)
    if path == "/write":
        write(b"body")
    if path == "/wrong":
        send_trailers([("content-length", "4")])
    send_trailers(TRAILERS[:1])
    send_trailers(TRAILERS[1:])
    return {"/list": [b"body"], "/empty": [b""], "/nothing": []}.get(path, [])


def pieces(send_trailers):
    yield b"bo"
    yield b"dy"
    send_trailers(TRAILERS)
    yield b""


def echo(stream, start_response, send_trailers):
    start_response("200 OK", [("Content-Type", "application/grpc")])
    while message := stream.read(65536):
        yield message.upper()
    if send_trailers:
        send_trailers(TRAILERS)
