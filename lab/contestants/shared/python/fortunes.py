"""The page of fortunes by Jinja2, for contestants of Python."""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

from jinja2 import Environment


class Fortune(NamedTuple):
    """A row of the table, or the one that is added."""

    id: int
    message: str


def render(rows: list[Fortune]) -> str:
    """Return the page of these rows and one more."""
    rows = [*rows, Fortune(0, "Additional fortune added at request time.")]
    rows.sort(key=attrgetter("message"))
    return _PAGE.render(fortunes=rows)


_PAGE = Environment(autoescape=True).from_string(
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
    "<tr><th>id</th><th>message</th></tr>"
    "{% for fortune in fortunes %}<tr><td>{{ fortune.id }}</td><td>{{ fortune.message }}</td></tr>{% endfor %}"
    "</table></body></html>"
)
