"""Bodies of every shape."""

# pyright: basic


class Sized:
    def __len__(self):
        return 1

    def __iter__(self):
        return iter([b"sized"])


SHAPES = {
    "list": lambda: [b"li", b"", b"st"],
    "tuple": lambda: (b"tuple",),
    "empty": lambda: [],
    "sized": Sized,
    "generator": lambda: (c for c in [b"", b"gene", b"", b"rator"]),
    "iterator": lambda: iter([b"iter"]),
    "nothing": lambda: iter(()),
    "bytes": lambda: map(bytes, [[b] for b in b"bytes"]),
}


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return SHAPES[environ["PATH_INFO"][1:]]()
