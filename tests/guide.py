"""Programs of guides that tests run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

GUIDES = Path(__file__).parents[1] / "docs/guides"


def program(guide: str, name: str) -> str:
    """The block of a guide before which it says to save it as ``name``."""
    text = (GUIDES / guide).read_text()
    found = re.search(
        rf"Save this as `{re.escape(name)}`(?:(?!^```).)*^```py\n(.*?)^```$", text, re.M | re.S
    )
    assert found, f"{guide} has no program {name}"
    return found[1]
