"""The command line, ``citius lab …``: importing this module registers every command.

``commands`` has those about contestants, ``measure`` those that measure, ``results`` those that
read result folders, ``keep`` and ``answer_command`` those that make a page of kept ones, ``bench``
measures an application that is not the lab's, ``counting`` adds instructions to a result,
``commits`` shows what was kept, commit by commit.
"""

from __future__ import annotations

from citius_lab import answer_command, bench, commits, counting, keep, measure, results
from citius_lab.commands import lab

__all__ = ["answer_command", "bench", "commits", "counting", "keep", "lab", "measure", "results"]
