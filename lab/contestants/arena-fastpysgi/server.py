"""HttpArena's profiles on FastPySGI: the raw ASGI application that uvicorn runs too."""

import argparse

import fastpysgi
from arena_asgi import app

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--workers", type=int, default=1)
options = parser.parse_args()

fastpysgi.server.lifespan = 0
fastpysgi.server.read_buffer_size = 256 * 1024
fastpysgi.server.max_content_length = 31_000_000
fastpysgi.run(app, host="127.0.0.1", port=options.port, workers=options.workers, loglevel=0)
