"""The commands of ``citius lab``."""
