"""Handlers that wait in a driver that knows nothing of greenlets, for the store at REDIS."""

# pyright: basic

import os

import redis
from citius import App

app = App()

store = redis.Redis(unix_socket_path=os.environ["REDIS"], socket_timeout=20, decode_responses=True)


@app.get("/alive")
def alive():
    return str(store.incr("alive"))


@app.get("/pop/{key}")
def pop(key):
    return " ".join(map(str, store.blpop(key, timeout=15) or ["nothing"]))


@app.get("/push/{key}/{value}")
def push(key, value):
    return store.rpush(key, value)
