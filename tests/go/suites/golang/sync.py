"""What golang_test.py takes of pygolang's sync."""

from threading import Lock as Mutex

__all__ = ["Mutex"]
