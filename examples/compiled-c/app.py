"""Handlers in C: citius serve app.py, after make."""

from pathlib import Path

from citius import App, load_handlers

app = App()
handlers = load_handlers(Path(__file__).parent / "handlers.so")

app.get("/hello/{name}", compiled=handlers["hello"])
app.get("/primes", compiled=handlers["primes"], pool=True)
app.post("/reverse", compiled=handlers["reverse"])
