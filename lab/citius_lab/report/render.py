"""Renders the templates in ``templates/``: every value is escaped, and one that is missing is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def environment() -> Environment:
    """Return the environment of all templates."""
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
    )
    found.filters["px"] = _px
    return found


def render(name: str, **context: object) -> str:
    """Return a template's text."""
    return environment().get_template(name).render(context)


def _px(value: float) -> str:
    """Return a coordinate to a tenth of a pixel."""
    return f"{value:.1f}"
