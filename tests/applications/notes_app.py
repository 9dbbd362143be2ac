"""Keeps notes in a file of SQLite, as the tutorial's application does."""

import os
import sqlite3

from citius import App, Request

app = App()


@app.on_startup
def open_database() -> None:
    app.state.db = sqlite3.connect(os.environ.get("NOTES_DB", "notes.db"), isolation_level=None)
    app.state.db.execute("CREATE TABLE IF NOT EXISTS notes (text TEXT)")


@app.post("/notes")
def write(request: Request) -> str:
    app.state.db.execute("INSERT INTO notes VALUES ('x')")
    return str(app.state.db.execute("SELECT count(*) FROM notes").fetchone()[0])
