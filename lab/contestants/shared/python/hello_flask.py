"""A hello on Flask."""

from flask import Flask

app = Flask(__name__)


@app.get("/")
def hello():
    return "Welcome!\n", {"Content-Type": "text/plain"}
