"""The contract on FastPySGI: the raw ASGI application that uvicorn runs too."""

import argparse

import fastpysgi
from asgi_app import app

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--workers", type=int, default=1)
options = parser.parse_args()

fastpysgi.server.lifespan = 0
fastpysgi.run(app, host="127.0.0.1", port=options.port, workers=options.workers)
