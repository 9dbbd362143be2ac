"""The contract on Citius with handlers in Cython where the work is arithmetic, or waits."""

import goroutines
import plain
from citius import App
from handlers import __pyx_capi__ as native

app = App()
plain.add(app, sleeps=False)
app.get("/million-loop", compiled=native["million_loop"], content_type="text/plain")
app.get("/classify/{rest:path}", compiled=native["classify"], content_type="text/plain")
text = {"serial": True, "content_type": "text/plain"}
app.get("/async", compiled=goroutines.sleeps, **text)
app.get("/fan-out", compiled=goroutines.fan_out, **text)
app.get("/classify-channel/{rest:path}", compiled=goroutines.classify, **text)
