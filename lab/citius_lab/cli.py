"""The command line, ``citius lab …``: importing this module registers every command.

``commands`` has those about contestants, ``measure`` those that measure, ``results`` those that
read result folders.
"""

from __future__ import annotations

from citius_lab import measure, results
from citius_lab.commands import lab

__all__ = ["lab", "measure", "results"]
