"""Counts the requests of `app.forward` that Python passes on, by the first segment of their paths."""

# pyright: basic

from collections import Counter

from citius.http.gateway.forwarding import Forwarder

seen: Counter[str] = Counter()
original = Forwarder._exchange


async def counted(self, request, *rest):
    seen[request.path.split("/")[1]] += 1
    return await original(self, request, *rest)


setattr(Forwarder, "_exchange", counted)  # noqa: B010 - with a signature of its own
