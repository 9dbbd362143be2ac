"""The contract on Citius, native handlers: `def` where nothing waits, `async def` where it does."""

import plain
import work
from citius import App, Response

app = App()
plain.add(app)


@app.get("/million-loop")
def million_loop(seed: int = 1):
    return str(work.million_loop(seed))


@app.get("/classify/{path:path}")
def classify(request):
    return Response(work.classify(request.raw_path), content_type="text/plain")
