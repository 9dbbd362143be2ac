"""A service on Flask: a session, the time a request took, and headers for browsers."""

import time

from flask import Flask, g, request

app = Flask(__name__)
app.secret_key = "-"


@app.before_request
def begin():
    g.began_at = time.perf_counter()


@app.after_request
def end(response):
    response.headers["Server-Timing"] = f"app;dur={(time.perf_counter() - g.began_at) * 1e3:.2f}"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["X-Frame-Options"] = "DENY"
    response.headers["Access-Control-Allow-Origin"] = "https://shop.example"
    return response


@app.get("/greet/<name>")
def greet(name):
    return {"hello": [name] * int(request.args["times"])}
