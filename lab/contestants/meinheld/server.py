"""The raw WSGI application of uwsgi on Meinheld's own server."""

import argparse
import os

import meinheld
from meinheld import server
from wsgi_stdlib import app

parser = argparse.ArgumentParser()
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--workers", type=int, default=1)
options = parser.parse_args()

meinheld.set_keepalive(60)
meinheld.set_backlog(2048)
server.set_access_logger(None)
server.listen(("127.0.0.1", options.port))
for _ in range(options.workers - 1):
    if os.fork() == 0:
        break
server.run(app)
