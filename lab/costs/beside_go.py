"""How programs that measure Citius beside Go say what they have found."""

from __future__ import annotations

import statistics
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def write(name: str, figures: Mapping[str, Sequence[float]], unit: str, *, digits: int = 0) -> None:
    """Write a line to standard output: the median of each side with its quartiles, and Citius's over Go's."""
    texts: list[str] = []
    for who, found in figures.items():
        low, middle, high = statistics.quantiles(found, n=4)
        texts.append(f"{who} {middle:.{digits}f} {unit} ({low:.{digits}f} to {high:.{digits}f})")
    ratio = statistics.median(figures["Citius"]) / statistics.median(figures["Go"])
    sys.stdout.write(f"{name}: {', '.join(texts)}, {ratio:.2f} times\n")
    sys.stdout.flush()
