"""A native application with a pool on uvicorn: its DSN and uvicorn's loop are arguments."""

# pyright: basic

import asyncio
import socket
import sys
import threading
import urllib.request

import uvicorn
from citius import App, pg

pool = pg.Pool(sys.argv[1], size=2)
app = App(lifespan=pool.lifespan)


@app.get("/all")
async def everything() -> str:
    numbers = await asyncio.gather(*(pool.fetch_value("SELECT $1::int", n) for n in range(20)))
    async with pool.cursor("SELECT g FROM generate_series(1, 2) g", rows_max=1) as rows:
        portions = [g async for (g,) in rows]
    async with pool.transaction() as tx:
        seven = await tx.fetch_value("SELECT 7")
    assert all(session._reactor is None for session in pool._sessions)
    return f"{len(set(numbers))} {portions} {seven}"


with socket.socket() as listener:
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    config = uvicorn.Config(app.asgi(), loop=sys.argv[2], log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started and thread.is_alive():
        pass
    try:
        print(urllib.request.urlopen(f"http://127.0.0.1:{port}/all", timeout=20).read().decode())
    finally:
        server.should_exit = True
        thread.join()
