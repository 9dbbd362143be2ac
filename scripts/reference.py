"""Writes pages that are made from sources.

These are docs/reference/options.md (config.py), the tables of docs/migration/servers.md (compat.py), and
docs/README.md (the navigation of mkdocs.yml).

With --check it only says whether they are up to date.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from citius.settings.compat import FLAGS, UWSGI, rows
from citius.settings.config import OPTIONS

if TYPE_CHECKING:
    from citius.settings.option import Option

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reference/options.md"
COMING_FROM = DOCS / "migration/servers.md"
CONTENTS = DOCS / "README.md"
SITE = DOCS.parent / "mkdocs.yml"
# Pages that are the first of their section, and have no name of their own there.
SECTION_PAGES = {
    "README.md": "First minute",
    "examples/README.md": "Examples",
    "docs/reference/api/README.md": "API",
    "lab/README.md": "The lab",
    "docs/internals/README.md": "Internals",
}

HEAD = """\
<!-- `make docs` writes this page from python/citius/settings/config.py. -->

# Options

Each option is a flag of `citius serve`, a variable of the environment, a key of `[tool.citius]` in
`pyproject.toml` and a field of `citius.Config` (limits: a key of its `limits`). The command line has
priority over the environment, and the environment over the file.
"""

LIMITS = """
## Limits

Limits of one worker, with the consequence of exceeding each. A time of 0 means "no deadline". The origin
of each default is in `crates/citius-http/src/limits.rs`.
"""


def row(option: Option) -> str:
    """One line of a table."""
    flags = ", ".join(f"`{flag}`" for flag in {**dict.fromkeys(option.flags), **option.scale})
    if option.kind == "bool":
        flags += f", `--no-{option.flags[0][2:]}`"
    default = option.default
    if option.kind == "bool":
        shown = "" if default is None else "on" if default else "off"
    else:
        if isinstance(default, tuple):
            default = ", ".join(default)
        shown = "" if default in (None, "") else f"`{default}`"
    if option.unit:
        shown += f" {option.unit}"
    text = option.help
    if option.choices:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option.choices) + "."
    variables = ", ".join(f"`{variable}`" for variable in option.env)
    return f"| {flags} | {shown.strip()} | {text} | {variables} |"


def page() -> str:
    """The whole page of options."""
    header = "\n| flag | default | | environment |\n|---|---|---|---|\n"
    groups: dict[str, list[str]] = {}
    for option in OPTIONS.values():
        if not option.is_limit:
            groups.setdefault(option.group, []).append(row(option))
    plain = [f"\n## {group}\n{header}" + "\n".join(lines) + "\n" for group, lines in groups.items()]
    limits = [row(option) for option in OPTIONS.values() if option.is_limit]
    return HEAD + "".join(plain) + LIMITS + header + "\n".join(limits) + "\n"


def table(server: str) -> str:
    """Their flags and ours, side by side."""
    if server == "uwsgi":
        lines = [f"| `{theirs}` | {ours} |" for theirs, ours in UWSGI.items()]
    else:
        lines = [f"| `{theirs}` | {ours} |" for theirs, ours in rows(server)]
    return "\n".join([f"| {server} | citius |", "|---|---|", *lines])


def coming_from() -> str:
    """The page as it should be: what is between the marks is made, the rest stays."""
    text = COMING_FROM.read_text()
    for server in (*FLAGS, "uwsgi"):
        begin, end = f"<!-- made by make docs: {server} -->\n", "\n<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{COMING_FROM.name} has no place for {server}")
        text = before + begin + table(server) + end + rest.partition(end)[2]
    return text


CONTENTS_HEAD = """\
<!-- `make docs` writes this page from the navigation in mkdocs.yml. -->

# All pages

A way through them: the first minute is in [README](../README.md), the [tutorial](tutorial.md) builds a
service and deploys it, the guides are divided by task, the reference has every option and every name.
"""


def contents() -> str:
    """The list of all pages: sections of the navigation as headings, pages as links."""
    lines: list[str] = []
    for line in SITE.read_text().partition("\nnav:\n")[2].splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        title, _, target = line.strip().removeprefix("- ").rpartition(": ")
        if line.endswith(":"):
            name = line.strip().removeprefix("- ").removesuffix(":")
            lines.append(f"\n## {name}\n" if depth == 0 else "  " * (depth - 1) + f"- {name}")
        elif target != "docs/README.md":
            path = os.path.relpath(DOCS.parent / target, DOCS)
            text = title or SECTION_PAGES[target]
            lines.append("  " * (depth - 1) + f"- [{text}]({path})")
    return CONTENTS_HEAD + "\n".join(lines) + "\n"


def main() -> int:
    """Write or compare."""
    made = {PAGE: page(), COMING_FROM: coming_from(), CONTENTS: contents()}
    if "--check" in sys.argv:
        old = [
            path.name
            for path, text in made.items()
            if not path.exists() or path.read_text() != text
        ]
        for name in old:
            print(f"{name} is out of date: run `make docs`")
        return 1 if old else 0
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


sys.exit(main())
