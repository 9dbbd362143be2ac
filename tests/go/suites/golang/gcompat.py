"""Not of channels; golang_test.py imports it."""

from golang import not_here as qq

__all__ = ["qq"]
