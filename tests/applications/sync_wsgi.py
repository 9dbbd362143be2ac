"""A WSGI application whose requests wait for a database, which is in the variable DSN."""

# pyright: basic

import json
import os

from citius import pg
from citius.go import chan, go

pool = pg.Pool(os.environ["DSN"], size=4)


def app(environ, start_response):
    path = environ["PATH_INFO"]
    found = answer(path)
    body = found if isinstance(found, str) else json.dumps(found)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [body.encode()]


def answer(path):
    db = pool.sync
    if path.startswith("/add/"):
        return db.fetch_value("SELECT $1::int + 1", int(path.rpartition("/")[2]))
    if path == "/sessions":
        return pool.sessions
    if path == "/slow":
        db.fetch("SELECT pg_sleep(0.5)")
        return "slept"
    if path == "/transaction":
        with db.transaction() as tx:
            tx.execute("SELECT set_config('app.number', '7', true)")
            return int(tx.fetch_value("SELECT current_setting('app.number')"))
    results = chan(10)
    for n in range(10):
        go(lambda n=n: results.send(db.fetch_value("SELECT $1::int", n)))
    return sorted(results.recv()[0] for _ in range(10))
