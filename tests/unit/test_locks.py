"""No lock is held while Python code can run: here that code is the finalizer of what is replaced."""

from __future__ import annotations

import re
from pathlib import Path

from citius import Response

CRATES = Path(__file__).parents[2] / "crates"


def test_what_a_setter_replaces_may_ask_for_its_successor() -> None:
    response = Response("")
    seen: list[str | None] = []

    class Media(str):
        def __del__(self) -> None:
            seen.append(response.content_type)

    response.content_type = Media("text/plain")
    response.content_type = "text/html"
    assert seen == ["text/html"]


def test_nothing_that_python_counts_is_assigned_under_a_guard() -> None:
    # Both forms drop the old value before the guard: use `replace`, and drop what it returns after.
    assigned = re.compile(r"^\s*(\*lock\([^;=]*\) = |lock\([^;=]*\)\.\w+ = Some\()", re.MULTILINE)
    found = [
        f"{path.name}: {match[0].strip()}"
        for crate in ("citius-base", "citius-clients", "citius-py", "citius-native")
        for path in (CRATES / crate / "src").rglob("*.rs")
        for match in assigned.finditer(path.read_text())
    ]
    # The state of a response is put back where it was taken from: nothing is there.
    assert found == ["start.rs: *lock(&self.shared.state) ="]
