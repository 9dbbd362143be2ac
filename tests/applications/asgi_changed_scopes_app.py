"""Changes its scope in every third request; with SUSPENDS after a turn of the loop."""

# pyright: basic

import asyncio
import os
from itertools import count

from asgi_parts import answer

CHANGES = [
    lambda scope: scope["headers"].append((b"x", b"y")),
    lambda scope: scope["headers"].clear(),
    lambda scope: scope["headers"].__setitem__(0, (b"x", b"y")),
    lambda scope: scope["extensions"].update(mine={}),
    lambda scope: scope["extensions"].clear(),
    lambda scope: scope["extensions"].update({"http.response.pathsend": {}}),
    lambda scope: scope["extensions"]["http.response.trailers"].update(mine=1),
    lambda scope: scope["asgi"].update(version="2.0"),
    lambda scope: scope["asgi"].pop("spec_version"),
    lambda scope: scope["state"].update(mine=1),
    lambda scope: scope.update(mine=1),
    lambda scope: scope.update(path="/mine", root_path="/mine", method="MINE"),
    lambda scope: scope.update(headers=[], extensions={}, state={"mine": 1}),
    lambda scope: scope.pop("client"),
    lambda scope: scope.clear(),
]
SUSPENDS = "SUSPENDS" in os.environ
numbers = count()


async def app(scope, receive, send):
    seen = repr(scope).encode()
    if SUSPENDS:
        await asyncio.sleep(0)
    number = next(numbers)
    if number % 3:
        CHANGES[number // 3 % len(CHANGES)](scope)
    await answer(send, seen)
