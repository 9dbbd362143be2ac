"""Bodies read piece by piece, through the client in memory."""

import pytest
from citius import App, Request
from citius.testing import Client

app = App()


@app.post("/count", stream=True)
async def count(request: Request) -> int:
    total = 0
    async for piece in request.stream():
        total += len(piece)
    return total


@app.post("/lost", stream=True)
async def lost(request: Request) -> int:
    async for _ in request.stream():
        pass
    return len(request.body())


@pytest.mark.parametrize("size", [0, 1, 65_536, 100_000, 3_000_000])
def test_bodies_larger_than_the_window_arrive_whole(size: int) -> None:
    with Client(app) as client:
        assert client.post("/count", content=b"x" * size).json() == size


def test_a_body_that_was_given_away_is_not_taken_for_an_empty_one() -> None:
    with Client(app) as client, pytest.raises(RuntimeError, match="read piece by piece"):
        client.post("/lost", content=b"x" * 100)
