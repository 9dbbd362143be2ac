"""What all gateways have behind them: a greeting, and 100 events as fast as they are read."""

import plain
from citius import App, event_stream

app = App()
plain.add(app)


@app.get("/sse")
def sse(n: int):
    """So many events, as fast as the gateway reads."""
    return event_stream(
        f"{number:08} The quick brown fox jumps over the lazy dog again" for number in range(n)
    )
