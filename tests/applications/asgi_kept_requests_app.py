"""Keeps what belongs to a request, and looks at it later."""

# pyright: basic

from itertools import count

from asgi_parts import answer

numbers = count()
kept = []


async def app(scope, receive, send):
    parts = [
        scope,
        scope["headers"],
        scope["state"],
        scope["extensions"],
        scope["asgi"],
        *scope["extensions"].values(),
        receive,
        send,
    ]
    known = [part for part in parts if any(part is other for other in kept)]
    number = next(numbers)
    if number % 2:
        kept.append(parts[number // 2 % len(parts)])
    await answer(send, f"{len(known)} {len(kept)}".encode())
