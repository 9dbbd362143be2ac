"""Responses whose bytes are counted as they are sent; files of the current directory."""

# pyright: basic

from citius import App

app = App()


@app.get("/file/{size:int}")
def file(size: int):
    return open(f"large-{size}", "rb")


@app.get("/bytes/{size:int}")
def large(size: int):
    return bytes(size)


@app.get("/stream/{size:int}")
async def stream(size: int):
    for _ in range(size // 100_000):
        yield bytes(100_000)


@app.get("/small")
def small():
    return "small"
