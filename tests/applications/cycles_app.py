"""Handlers that make garbage in cycles."""

# pyright: basic

import asyncio
import gc

from citius import App, Response

app = App()


class User:
    alive = 0
    response: Response | None = None

    def __init__(self, request):
        self.request = request
        User.alive += 1

    def __del__(self):
        User.alive -= 1


@app.get("/state")
def in_state(request):
    request.state.user = User(request)


@app.get("/state/async")
async def in_state_async(request):
    await asyncio.sleep(0)
    request.state.user = User(request)


@app.get("/response")
def in_response(request):
    user = User(request)
    user.response = Response(user)


@app.get("/alive")
def alive():
    gc.collect()
    return User.alive
