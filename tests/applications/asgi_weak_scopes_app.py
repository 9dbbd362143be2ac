"""Puts objects into scopes, and says how many are alive."""

# pyright: basic

import gc
import weakref
from itertools import count

from asgi_parts import answer

gc.disable()
numbers = count()
alive = weakref.WeakSet()


class Mine:
    pass


async def app(scope, receive, send):
    seen = len(alive)
    mine = Mine()
    alive.add(mine)
    [
        lambda: scope["state"].update(mine=mine),
        lambda: scope["headers"].append(mine),
        lambda: scope["extensions"].update(mine=mine),
        lambda: scope["extensions"]["http.response.pathsend"].update(mine=mine),
        lambda: scope["asgi"].update(mine=mine),
        lambda: scope.update(mine=mine),
        lambda: scope.update(headers=[mine]),
    ][next(numbers) % 7]()
    await answer(send, str(seen).encode())
