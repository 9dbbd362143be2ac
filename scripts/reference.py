"""Writes docs/reference/options.md from config.py; with --check only says whether it is up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from citius.config import OPTIONS, Option

PAGE = Path(__file__).parents[1] / "docs/reference/options.md"

HEAD = """\
# Options

Made by `make docs` from `python/citius/config.py`; do not edit.

Each option is a flag of `citius serve`, a variable of the environment, a key of `[tool.citius]` in
`pyproject.toml` and a field of `citius.Config` (limits: a key of its `limits`). The command line comes
first, then the environment, then the file.
"""

LIMITS = """
## Limits

What a client may do to one worker. Times of 0 mean "no deadline". The reasons for the defaults are in
`crates/citius-http/src/limits.rs`.
"""


def row(option: Option) -> str:
    """One line of a table."""
    flags = ", ".join(f"`{flag}`" for flag in option.flags)
    if option.kind == "bool":
        flags += f", `--no-{option.flags[0][2:]}`"
    default = option.default
    if option.kind == "bool":
        shown = "on" if default else "off"
    else:
        shown = "" if default in (None, ()) else f"`{default}`"
    if option.unit:
        shown += f" {option.unit}"
    text = option.help
    if option.choices:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option.choices) + "."
    variables = ", ".join(f"`{variable}`" for variable in option.env)
    return f"| {flags} | {shown.strip()} | {text} | {variables} |"


def page() -> str:
    """The whole page."""
    header = "\n| flag | default | | environment |\n|---|---|---|---|\n"
    plain = [row(option) for option in OPTIONS.values() if not option.is_limit]
    limits = [row(option) for option in OPTIONS.values() if option.is_limit]
    return HEAD + header + "\n".join(plain) + "\n" + LIMITS + header + "\n".join(limits) + "\n"


def main() -> int:
    """Write or compare."""
    if "--check" in sys.argv:
        if PAGE.exists() and PAGE.read_text() == page():
            return 0
        print(f"{PAGE.name} is out of date: run `make docs`")
        return 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    return 0


sys.exit(main())
