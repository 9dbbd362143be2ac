"""The contract on Citius; each classification in a goroutine that sends its lines over a channel."""

import plain
import work
from citius import App, Response
from citius.go import chan, go

app = App()
plain.add(app)


@app.get("/million-loop")
def million_loop(seed: int = 1):
    return str(work.million_loop(seed))


async def classifier(path, lines):
    await lines.send(work.classify(path))


@app.get("/classify/{path:path}")
async def classify(request):
    lines = chan()
    go(classifier, request.raw_path, lines)
    found, _ = await lines.recv()
    return Response(found, content_type="text/plain")
