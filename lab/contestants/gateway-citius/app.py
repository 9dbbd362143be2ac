"""A gateway in a line."""

import os

from citius import App

app = App()
app.forward("/{rest:path}", os.environ["ORIGIN_URL"])
