"""Handlers that wait for a database serially; it is in the variable DSN."""

# pyright: basic

import os

from citius import App, pg
from citius.go import chan, go

pool = pg.Pool(os.environ["DSN"], size=4)
app = App()


@app.get("/add/{a}", blocking=True)
def add(a: int) -> int:
    return pool.sync.fetch_value("SELECT $1::int + 1", a)


@app.get("/sessions", blocking=True)
def sessions() -> int:
    return pool.sessions


@app.get("/slow", blocking=True)
def slow() -> str:
    pool.sync.fetch("SELECT pg_sleep(0.5)")
    return "slept"


@app.get("/transaction", blocking=True)
def transaction() -> int:
    with pool.sync.transaction() as tx:
        tx.execute("SELECT set_config('app.number', '7', true)")
        return int(tx.fetch_value("SELECT current_setting('app.number')"))


@app.get("/goroutines", blocking=True)
def goroutines() -> list:
    results = chan(10)

    def work(n: int) -> None:
        results.send(pool.sync.fetch_value("SELECT $1::int", n))

    for n in range(10):
        go(work, n)
    return sorted(results.recv()[0] for _ in range(10))
