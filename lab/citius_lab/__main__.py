"""``python -m citius_lab`` is ``citius lab``."""

from citius_lab.cli import lab

lab(prog_name="citius lab")
