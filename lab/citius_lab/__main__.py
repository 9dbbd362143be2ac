"""``python -m citius_lab`` is ``citius lab``."""

import sys

try:
    from citius_lab.cli import lab
except KeyboardInterrupt:
    # Importing takes a second on a slow machine, and nothing has been started yet.
    sys.exit(130)

lab(prog_name="citius lab")
