"""``python -m citius``."""

from citius.cli import main

main()
