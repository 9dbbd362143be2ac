"""The gateway of gateway-64 and gateway-h3: files from disk, everything else from the server behind."""

import os

from citius import App
from citius.http import Client

server = Client("http://127.0.0.1:8080")
app = App(lifespan=server.lifespan)
app.static("/static", os.environ["STATIC_DIR"])
app.forward("/{rest:path}", server)
