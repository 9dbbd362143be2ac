"""Routes of the handlers in src/lib.rs."""

import os

from citius import App, load_handlers

app = App()
handlers = load_handlers(os.environ["LIBRARY"])
app.get("/call/{id}", compiled=handlers["call"], serial=True)
app.get("/call-tls/{id}", compiled=handlers["call_tls"], serial=True)
