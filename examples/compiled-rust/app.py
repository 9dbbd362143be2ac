"""Handlers in Rust: citius serve app.py, after cargo build --release."""

import os
from pathlib import Path

from citius import App, load_handlers

app = App()
target = Path(os.environ.get("CARGO_TARGET_DIR") or Path(__file__).parent / "target")
handlers = load_handlers(target / "release/libhandlers.so")

app.post("/add/{amount}", compiled=handlers["add"])
app.get("/agent", compiled=handlers["agent"], pool=True)
app.get("/panic", compiled=handlers["mishap"])

# These wait: each runs in a goroutine.
for name in ("squares", "words", "unsent", "child", "relay", "line"):
    app.get(f"/{name}", compiled=handlers[name], serial=True)
    app.get(f"/pool/{name}", compiled=handlers[name], serial=True, pool=True)
