"""The contract on Citius with handlers in Cython where the work is arithmetic."""

import plain
from citius import App
from handlers import __pyx_capi__ as native

app = App()
plain.add(app)
app.get("/million-loop", compiled=native["million_loop"], content_type="text/plain")
app.get("/classify/{rest:path}", compiled=native["classify"], content_type="text/plain")
