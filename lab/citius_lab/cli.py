"""The command line, ``citius lab …``: importing this module registers every command.

``commands.base`` has those about contestants, ``run`` those that measure, ``results`` those that read
result folders, ``keep`` and ``answer`` those that make a page of kept ones, ``bench`` measures an
application that is not the lab's, ``count`` adds instructions to a result, ``history`` shows what was
kept, commit by commit.
"""

from __future__ import annotations

from citius_lab.commands import answer, bench, count, history, keep, results, run
from citius_lab.commands.base import lab

__all__ = ["answer", "bench", "count", "history", "keep", "lab", "results", "run"]
