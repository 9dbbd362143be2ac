"""A procedure that is called by Connect, and fails in two ways."""

# pyright: basic

from citius import App, NotFound

app = App()
app.connect("/api")


@app.rpc("shop.get")
async def get(id: int) -> dict[str, int]:
    if id == 404:
        raise NotFound("no such thing")
    if id == 500:
        raise ValueError("broken")
    return {"id": id}
