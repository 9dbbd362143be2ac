"""The page of fortunes: a table of rows, sorted by message, escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import WrongResponse, expect
from citius_lab.paths import folder

if TYPE_CHECKING:
    from citius_lab.definitions.workloads import Response

ADDED = (0, "Additional fortune added at request time.")


class _Cells(HTMLParser):
    """Collects the cells of a table; markup within a cell is none of it."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[str] = []
        self._is_cell = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._is_cell = tag == "td"
        if tag == "td":
            self.cells.append("")
        elif tag == "script":
            raise WrongResponse("fortunes: a message is not escaped")

    def handle_endtag(self, tag: str) -> None:
        self._is_cell = self._is_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        if self._is_cell:
            self.cells[-1] += data


def golden() -> list[tuple[int, str]]:
    """Return the rows of the page, as ``db.sql`` makes them, with the one that is added."""
    text = (folder("workloads") / "db.sql").read_text()
    rows = re.findall(r"\((\d+), '(.*)'\)[,;]$", text, flags=re.MULTILINE)
    return sorted([*((int(id), message) for id, message in rows), ADDED], key=lambda row: row[1])


def check(answer: Response, target: str) -> None:
    """Compare the table's cells."""
    if not answer.body.lstrip().startswith(b"<!DOCTYPE html>"):
        raise WrongResponse("fortunes: expected a page that begins with <!DOCTYPE html>")
    page = _Cells()
    page.feed(answer.body.decode())
    expect(
        "fortunes", [cell for id, message in golden() for cell in (str(id), message)], page.cells
    )
