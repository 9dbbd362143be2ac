"""What tests/static serves and compares with."""

LARGE = bytes(range(256)) * 1024
"""More than is read into memory."""
