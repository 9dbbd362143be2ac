"""A WSGI application that sends more than it has declared."""

# pyright: basic


def app(environ, start_response):
    write = start_response("200 OK", [("content-length", "3")])

    def pieces():
        yield b"a"
        yield b"bcd"

    if environ["PATH_INFO"] == "/written":
        write(b"a")
        write(b"bcd")
        return []
    return pieces()
