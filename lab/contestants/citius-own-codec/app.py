"""The contract as in `citius`, but MessagePack records are decoded by Citius's own decoder."""

import plain
import records_citius
import work
from citius import App, Response

app = App()
plain.add(app, records_citius.parse_msgpack)


@app.get("/million-loop")
def million_loop(seed: int = 1):
    return str(work.million_loop(seed))


@app.get("/classify/{path:path}")
def classify(request):
    return Response(work.classify(request.raw_path), content_type="text/plain")
