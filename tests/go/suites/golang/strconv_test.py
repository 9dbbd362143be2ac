"""Not of channels; golang_test.py imports it."""

from golang import not_here as byterange

__all__ = ["byterange"]
