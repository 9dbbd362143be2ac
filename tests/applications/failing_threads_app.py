"""A WSGI application whose threads fail outside of calls, as often as FAILURES says."""

# pyright: basic

import os

from citius.serving.interfaces import wsgi

FAILURES = int(os.environ["FAILURES"])


class Failing:
    def __init__(self, gateway):
        self.gateway, self.failed = gateway, 0

    def __getattr__(self, name):
        return getattr(self.gateway, name)

    def work(self):
        self.failed += 1
        if self.failed <= FAILURES:
            raise MemoryError("none")
        return self.gateway.work()


before = wsgi.WsgiApp.start


async def start(self):
    self._gateway = Failing(self._gateway)
    await before(self)


wsgi.WsgiApp.start = start


def app(environ, start_response):
    start_response("200 OK", [])
    return [b"yes"]
