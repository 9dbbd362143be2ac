"""Instructions per response of 100 server-sent events: `events.py [--tree DIR] [KIND...]`.

A generator and an async generator as the workload `sse` of the lab has them, an async generator that gives
way to the event loop after every tenth event, texts with their identifiers (`Event`), and values that are
sent as JSON. `none` is a response without events, `alone` one whose handler only exhausts the generator: what
of `def` Python itself takes. The way of counting is that of `counter.py`. `--tree` twice prints the
ratio of both.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from counter import ROOT, App, Workload, costs, show

SOURCE = """
import asyncio
from citius import App, Event, event_stream

app = App()

def text(number):
    return f"{number:08} The quick brown fox jumps over the lazy dog again"

@app.get("/none")
def none(n: int):
    return "none"

@app.get("/alone")
def alone(n: int):
    for event in (text(number) for number in range(n)):
        pass
    return "none"

@app.get("/def")
def of_def(n: int):
    return event_stream(text(number) for number in range(n))

@app.get("/async")
async def of_async(n: int):
    async def events():
        for number in range(n):
            yield text(number)
    return event_stream(events())

@app.get("/pauses")
async def pauses(n: int):
    async def events():
        for number in range(n):
            if number % 10 == 9:
                await asyncio.sleep(0)
            yield text(number)
    return event_stream(events())

@app.get("/ids")
def ids(n: int):
    return event_stream(Event(text(number), id="1") for number in range(n))

@app.get("/json")
def values(n: int):
    return event_stream({"id": number} for number in range(n))
"""
KINDS = ("none", "alone", "def", "async", "pauses", "ids", "json")


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, action="append", metavar="DIR")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    given = parser.parse_args()
    app = App(SOURCE)
    for kind in given.kinds or KINDS:
        workloads = {kind: Workload(app, f"/{kind}?n=100")}
        trees = [tree.resolve() for tree in given.tree or [ROOT]]
        show(kind, [costs(tree, app, [kind], workloads)[kind] for tree in trees])


if __name__ == "__main__":
    main()
